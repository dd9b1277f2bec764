"""A port that is held: for the one that is told of it, and for nobody else."""

from __future__ import annotations

import errno
import socket

import pytest

from tests.ports import held_port


def test_a_server_listens_there_twice_and_others_get_other_ports() -> None:
    with held_port() as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        for _ in range(2):
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("127.0.0.1", port))
                server.listen()
                with socket.create_connection(("127.0.0.1", port)):
                    server.accept()[0].close()
        with socket.socket() as other:
            with pytest.raises(OSError, match=f"Errno {errno.EADDRINUSE}"):
                other.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", 0))
            assert other.getsockname()[1] != port
