"""Requests over HTTP, bounded in bytes and time, and never from an address that the caller does not allow.

A name is resolved once, each of its addresses is looked at, and the connection goes to the one that was looked at: a name that
is resolved otherwise a moment later leads nowhere else. So for every redirect.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urljoin, urlsplit

_PIECE = 1 << 16
_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_TRANSLATED = IPv6Network("64:ff9b::/96")  # IPv4 addresses behind NAT64 (RFC 6052)
_SAFE = "/%:=&?~+!$,;'@()*[]"
HEADERS = {"User-Agent": "gnothi", "Accept-Encoding": "identity"}
Allowed = Callable[[str], bool]
"""Whether a connection to this IP address may be made."""


class Unfetched(Exception):
    """A page that is not to be had; the message says why."""


class Unconnected(Unfetched):
    """Nobody is there: no such host, or nobody listens."""


@dataclass(frozen=True, slots=True)
class Response:
    """``url`` is where it came from at last. Names of headers are in lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet: not private, of this machine, of this link, or anything like it."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if parsed in _TRANSLATED:
            inner = ip_address(int(parsed) & 0xFFFFFFFF)  # type: ignore[assignment]
        if inner is not None:
            return is_public(str(inner))
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def anywhere(address: str) -> bool:  # noqa: ARG001
    """For servers that the user names."""
    return True


def fetch(
    url: str,
    *,
    allowed: Allowed,
    most: int,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    redirects: int = _REDIRECTS,
    method: str = "GET",
    body: bytes | None = None,
    certificates: str | None = None,
) -> Response:
    """What is at an address, by whatever ``redirects`` lead to; ``certificates`` is a file of those who sign the server's.
    Blocks up to ``seconds`` in all. Raises Unfetched for an address that is not allowed, more than ``most`` bytes, no answer in
    time, or a failed connection."""
    end = time.monotonic() + seconds
    for _ in range(redirects + 1):
        response = _once(url, allowed, most, end, (method, body, headers or {}), certificates)
        place = response.headers.get("location", "")
        if response.status not in _MOVED or not place or not redirects:
            return response
        url = urljoin(url, place)
    raise Unfetched("it redirects again and again")


def _once(
    url: str,
    allowed: Allowed,
    most: int,
    end: float,
    request: tuple[str, bytes | None, Mapping[str, str]],
    certificates: str | None,
) -> Response:
    method, content, headers = request
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port or (443 if parts.scheme == "https" else 80)
        if parts.scheme not in ("http", "https") or not host:
            raise Unfetched("it is no address of http or https")
        target = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_SAFE)
        secure = ssl.create_default_context(cafile=certificates) if parts.scheme == "https" else None
        connection = _Connection(host, port, secure, _checked(host, port, allowed), _seconds_left(end))
        watch = threading.Timer(_seconds_left(end), connection.cut)  # for a server that sends a byte now and then
        watch.daemon = True
        watch.start()
        try:
            connection.request(method, target, content, {**HEADERS, **headers})
            with connection.getresponse() as response:  # it owns the socket where the reply says no length
                body = bytearray()
                while piece := response.read(_PIECE):
                    body += piece
                    if len(body) > most:
                        raise Unfetched(f"it has more than {most:,} bytes")
                _seconds_left(end)  # a connection that was cut looks as one that has ended
                if response.length:
                    raise Unfetched(f"it ended {response.length:,} bytes early")
                got = {name.lower(): value for name, value in response.getheaders()}
                return Response(url, response.status, got, bytes(body))
        finally:
            watch.cancel()
            connection.close()
    except TimeoutError:
        raise Unfetched("no answer in time") from None
    except (ConnectionRefusedError, socket.gaierror) as error:
        raise Unconnected(f"{type(error).__name__}: {error!s:.200}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        late = time.monotonic() >= end
        raise Unfetched("no answer in time" if late else f"{type(error).__name__}: {error!s:.200}") from None


def _seconds_left(end: float) -> float:
    if (seconds := end - time.monotonic()) <= 0:
        raise TimeoutError
    return seconds


def _checked(host: str, port: int, allowed: Allowed) -> str:
    """The first address of a name; all must be allowed."""
    addresses = [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not addresses or not all(map(allowed, addresses)):
        raise Unfetched(f"{host} leads to an address that is not of the internet")
    return addresses[0]


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, port: int, secure: ssl.SSLContext | None, address: str, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._secure, self._address = secure, address
        self._opened: socket.socket | None = None  # `sock` is None once a reply without a length has begun

    def connect(self) -> None:
        self.sock = self._opened = socket.create_connection((self._address, self.port), self.timeout)
        if self._secure:
            self.sock = self._opened = self._secure.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            self.sock.do_handshake()

    def cut(self) -> None:
        if self._opened is not None:
            with suppress(OSError):
                self._opened.shutdown(socket.SHUT_RDWR)
