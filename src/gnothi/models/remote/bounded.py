"""Replies of a bounded length, one to a request: a server that sends without end fills no memory, and one that sends what
nobody asked for answers no other question with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx2

longest: ContextVar[int] = ContextVar("longest")
"""Bytes that the reply to the request under way may have."""
AT_LEAST = 8 * 2**20
PER_TOKEN, PER_BYTE_READ = 4096, 1024
"""Bytes of reply for each token asked for, and for each byte of the request: scored prompts come back token by token, each
with the likeliest others."""


class TooLong(Exception):
    """A reply beyond what its request can need."""


def bound(generated: int, read: int) -> int:
    """Bytes that are enough for a reply of so many tokens to a request of so many bytes."""
    return AT_LEAST + PER_TOKEN * generated + PER_BYTE_READ * read


def client(url: str, secret: Collection[str], unsent: Collection[str]) -> httpx2.AsyncClient:
    """The official client's transport, which stops at ``longest`` and, where a server sends it on, repeats the request there,
    without the ``secret`` headers at another address than ``url``; ``unsent`` headers go nowhere. Raises ImportError."""
    import httpx2
    import openai

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, limit: int, connection: Any) -> None:
            self._stream, self._limit, self._connection = stream, limit, connection

        async def __aiter__(self) -> AsyncIterator[bytes]:
            received = 0
            async for piece in self._stream:
                received += len(piece)
                if received > self._limit:
                    raise TooLong(f"the reply goes on after {self._limit:,} bytes, more than its request can need")
                yield piece

        async def aclose(self) -> None:
            if self._connection is not None and more_came(self._stream):
                await self._connection.aclose()
            await self._stream.aclose()

    async def stop(response: httpx2.Response) -> None:
        limit = longest.get(AT_LEAST)
        response.stream = Bounded(response.stream, limit, response.extensions.get("network_stream"))
        if response.status_code in (301, 302):
            response.status_code = 307  # at the others, the transport asks without the request's body

    home = httpx2.URL(url)

    async def leave(request: httpx2.Request) -> None:
        elsewhere = (request.url.scheme, request.url.host, request.url.port) != (home.scheme, home.host, home.port)
        for name in (*unsent, *(secret if elsewhere else ())):
            request.headers.pop(name, None)

    return openai.DefaultAsyncHttpxClient(event_hooks={"request": [leave], "response": [stop]}, verify=_certificates())


@cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust, read once: that takes 50 ms, and a command may open several clients."""
    import httpx2

    return httpx2.create_ssl_context()


def more_came(stream: Any) -> bool:
    """Whether bytes came with the reply's last ones, beyond them. The transport, which looks for those that come later, would
    take these for the next reply; it shows them nowhere, so they are looked for where it keeps them."""
    for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):
        stream = getattr(stream, name, None)
    return stream is not None and bool(stream.trailing_data[0])


def invalid_url() -> type[Exception]:
    """What the transport raises for an address that cannot be."""
    import httpx2

    return httpx2.InvalidURL
