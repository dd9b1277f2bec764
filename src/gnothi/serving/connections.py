"""Connections, so many and no more: whoever holds one without asking makes room for whoever comes.

A process may open so many files (``ulimit -n``), and a connection is one of them: where none is left, nothing works."""

from __future__ import annotations

import asyncio
import errno
import http
import json
import logging
import os
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from gnothi.errors import InvalidSetting
from gnothi.serving import logs
from gnothi.serving.failures import Refusal

MOST = 4096
"""Connections at a time where nothing says how many files may be opened, or that very many may be."""
OTHERS = 256
"""Files kept for all else: models, indexes, caches, servers that are asked; at least half of those that may be opened."""
_AHEAD = 16
_REFUSED = 16
_LOG_EVERY = 10.0
_LACKING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_FULL = Refusal(503, "Too many connections. Ask again in a moment.", "server_error", "overloaded", headers={"Retry-After": "2"})
_SLOW = Refusal(408, "The request was not sent in time.", code="request_timeout")


def allowed(setting: int | None) -> int:
    """How many connections there may be at a time. Raises InvalidSetting where the system allows fewer than are wanted."""
    files = _files()
    if files is None:
        return setting or MOST
    room = max(1, files - min(OTHERS, files // 2))
    if setting is None:
        return min(MOST, room)
    if setting > room:
        raise InvalidSetting(
            f"setting 'server.connections': got {setting:,}, but this process may open {files:,} files. Expected at most "
            f"{room:,}, or a higher limit (ulimit -n)."
        )
    return setting


def _files() -> int | None:
    """How many files the process may open; None where nobody says."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


class Connections:
    """Those that are open; of them, those that wait for a request to be complete, the longest waiting first."""

    def __init__(self, most: int) -> None:
        self.most, self.open = most, 0
        self._waiting: dict[Connection, None] = {}

    def waits(self, one: Connection) -> None:
        """It does so since the first call of this without a ``works`` between."""
        self._waiting.setdefault(one)

    def works(self, one: Connection) -> None:
        self._waiting.pop(one, None)

    def make_room(self) -> bool:
        """End the one that has waited longest; whether there was one."""
        one = next(iter(self._waiting), None)
        if one is None:
            return False
        self.works(one)
        one.transport.abort()
        return True


class _CountedSocket(socket.socket):
    """A connection that is counted until its file is closed."""

    connections: Connections | None = None

    def _real_close(self, *arguments: Any) -> None:
        super()._real_close(*arguments)  # type: ignore[misc]
        if self.connections is not None:
            self.connections.open -= 1
            self.connections = None


class Door(socket.socket):
    """Listens. ``accept`` gives a connection where there is room or somebody makes it; others are refused and closed."""

    def __init__(self, family: int, connections: Connections) -> None:
        super().__init__(family)
        self.connections = connections
        self._refused: deque[socket.socket] = deque()
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY)
        self._logged = -_LOG_EVERY

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises BlockingIOError where nobody waits, or all who do were refused."""
        room = self.connections
        if room.open >= room.most + _AHEAD:  # those that make room are not closed yet
            raise BlockingIOError(errno.EAGAIN, "soon")
        while True:
            try:
                connection, address = self._next()
            except OSError as error:
                if error.errno not in _LACKING:
                    raise
                self._lacking()
                continue
            if room.open < room.most or room.make_room():
                room.open += 1
                connection.connections = room
                return connection, address
            self._refuse(connection)

    def _next(self) -> tuple[_CountedSocket, Any]:
        descriptor, address = self._accept()  # type: ignore[attr-defined]
        connection = _CountedSocket(self.family, self.type, self.proto, fileno=descriptor)
        connection.setblocking(False)
        return connection, address

    def _lacking(self) -> None:
        """No file is left: by the one kept for it who comes is refused, and who waits makes room. Raises BlockingIOError."""
        while self._refused:
            self._refused.popleft().close()
        for _ in range(_AHEAD):
            self.connections.make_room()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        with suppress(OSError):
            connection, _ = self._next()
            self._refuse(connection)
            self._refused.pop().close()
        with suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY)
        if self._spare is None:
            time.sleep(0.01)  # nothing can be done but wait, and not at full speed
        raise BlockingIOError(errno.EAGAIN, "no file is left")

    def _refuse(self, connection: socket.socket) -> None:
        """What it sent is read, and it is kept for a moment: closed at once, it might be reset before it reads why."""
        now = time.monotonic()
        if now - self._logged > _LOG_EVERY:
            self._logged = now
            logs.write("connections", logging.WARNING, open=self.connections.open, most=self.connections.most)
        with suppress(OSError):
            connection.send(raw(_FULL))
            connection.shutdown(socket.SHUT_WR)
            connection.recv(65536)
        self._refused.append(connection)
        if len(self._refused) > _REFUSED:
            self._refused.popleft().close()

    def close(self) -> None:
        while self._refused:
            self._refused.popleft().close()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        super().close()


class Config(uvicorn.Config):
    """uvicorn's, with the connections and how long a client may take to send a request or to read what it gets."""

    def __init__(self, app: Any, connections: Connections, client_timeout: float, **options: Any) -> None:
        super().__init__(app, http=Connection, **options)
        self.connections, self.client_timeout = connections, client_timeout


class Connection(H11Protocol):
    """One client: it has so long for a request, head and body, from connecting or the answer before, however it sends it."""

    config: Config
    _received = False
    _sending: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._turn()

    def connection_lost(self, exc: Exception | None) -> None:
        self.config.connections.works(self)
        _off(self._sending)
        _off(self._reading)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received = True
        super().data_received(data)
        self._turn()

    def on_response_complete(self) -> None:
        self._received = False
        super().on_response_complete()
        self._turn()

    def pause_writing(self) -> None:
        self._reading = self.loop.call_later(self.config.client_timeout, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        _off(self._reading)
        super().resume_writing()

    def _turn(self) -> None:
        """Whose turn it is: the client's, to send, or ours."""
        ours = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        if ours or self.transport.is_closing():
            self.config.connections.works(self)
            _off(self._sending)
            self._sending = None
            return
        self.config.connections.waits(self)
        if self._sending is None:
            self._sending = self.loop.call_later(self.config.client_timeout, self._too_slow)

    def _too_slow(self) -> None:
        answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if self._received and not answered:
            self.transport.write(raw(_SLOW))
        self.transport.close()


def raw(refusal: Refusal) -> bytes:
    """As it goes over the wire where no request was read."""
    body = json.dumps(refusal.as_dict()).encode()
    standard = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**refusal.headers, **standard}.items())
    return f"HTTP/1.1 {refusal.status} {http.HTTPStatus(refusal.status).phrase}\r\n{head}\r\n".encode() + body


def _off(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
