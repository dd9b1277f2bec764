"""Ports for servers that tests start: nobody else is given one while it is held."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """A port of 127.0.0.1 for a server that sets SO_REUSEADDR, as most do: it can listen there, again and again, though the
    port is bound here; whoever asks the system for a free one gets another. Nothing listens there until the server does."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])
