"""uvicorn around the application: opened before it listens, told to stop in two steps."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from types import FrameType

import uvicorn

from gnothi.errors import ResourceUnavailable
from gnothi.serving import logs
from gnothi.serving.app import context_of, create_app
from gnothi.serving.connections import Config, Connections, Door, allowed
from gnothi.serving.context import Context
from gnothi.serving.service import Service, open_service
from gnothi.serving.settings import ServerSettings
from gnothi.session.plan import Plan


class Server(uvicorn.Server):
    """First it takes no more questions and is not ready, then it stops listening; streams finish within ``grace``."""

    def __init__(self, config: uvicorn.Config, context: Context, door: Door, ready: Callable[[Server], None]) -> None:
        super().__init__(config)
        self._context, self._door, self._ready = context, door, ready

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets or [self._door])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready(self)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        drain, first = self._context.settings.drain, not self._context.room.closing
        self._context.room.closing = True
        if drain and first and sig == signal.SIGTERM:
            asyncio.get_running_loop().call_later(drain, self.handle_exit, sig, frame)
            return
        super().handle_exit(sig, frame)
        self._captured_signals = []  # uvicorn would send them to itself once more: an end that was asked for is no failure

    @property
    def connections(self) -> Connections:
        return self._door.connections

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


async def serve(plans: Mapping[str, Plan], settings: ServerSettings, ready: Callable[[Service, str], None]) -> None:
    """Serve until a signal comes; ``ready`` hears of it when questions are taken, with the address.

    Raises what opening raises, and ResourceUnavailable where the address cannot be had."""
    with bound(settings) as door:
        async with open_service(plans, settings.follow_ups) as service:
            server = create_server(context_of(service, settings), door, lambda server: ready(service, server.address))
            await asyncio.sleep(0)  # asked to end meanwhile: heard here, since uvicorn would log a traceback
            await server.serve()


def bound(settings: ServerSettings) -> Door:
    """The address, taken before models are opened, which takes longer; nobody can connect yet. Raises ResourceUnavailable, and
    InvalidSetting for more connections than there may be."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    door = Door(family, Connections(allowed(settings.connections)))
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((settings.host, settings.port))
        return door
    except OSError as error:
        door.close()
        raise ResourceUnavailable(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}. Expected an address of this "
            "machine and a port that is free: <--host ADDRESS>, <--port 8001>."
        ) from None


def create_server(context: Context, door: Door, ready: Callable[[Server], None]) -> Server:
    """The server at this address, not yet started; ``ready`` is called when it is."""
    settings = context.settings
    logs.install()
    config = Config(
        create_app(context),
        door.connections,
        settings.client_timeout,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=round(settings.grace),
    )
    return Server(config, context, door, ready)
