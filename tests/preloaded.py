"""Programs in processes of their own without the seconds that Python needs to import torch: forked from a process that has.

A server imports what is heavy, opens nothing, and forks a process for each program that a client sends, which gets the client's
folder, environment, input and output. The client is a small program that ends with the same exit code, for a shell a command as
any other. It serves tests of what programs do; how they start, and how they take signals, needs real processes.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = (
    "torch",
    "transformers.models.llama.modeling_llama",
    "scipy.stats",
    "matplotlib.pyplot",
    "gnothi.cli.main",
    "gnothi.cli.calibrate",
    "gnothi.cli.evaluate",
    "gnothi.cli.index",
    "gnothi.cli.listings",
    "gnothi.cli.report",
    "gnothi.api.evaluate",
    "gnothi.api.given",
    "gnothi.models.transformers",
    "gnothi.session.sources",
)
CLIENT = """#!{python} -SE
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
sent = json.dumps([os.getcwd(), dict(os.environ), {before!r} + sys.argv[1:]]).encode()
files = array.array("i", [0, 1, 2])
server.sendmsg([len(sent).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
server.sendall(sent)
code = server.recv(1)
os._exit(code[0] if code else 70)
"""


class Preloaded:
    """A running server."""

    def __init__(self, address: Path) -> None:
        self._address = address

    def client(self, path: Path, *before: str) -> Path:
        """Write a program that does what ``python BEFORE... ARGUMENTS...`` does: a module, code, or a script."""
        path.write_text(CLIENT.format(python=sys.executable, address=str(self._address), before=list(before)))
        path.chmod(0o755)
        return path


@contextmanager
def serving(folder: Path) -> Iterator[Preloaded]:
    """A server, until the context ends. The address of a socket has at most 107 characters: ``folder`` needs a short name."""
    address = folder / "s"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.preloaded", str(address)]
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield Preloaded(address)
        server.communicate()  # its input ends here, and so does it; likewise where this process is killed


def serve(address: str) -> None:
    for module in HEAVY:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(address)
        place.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while place in select.select([place, sys.stdin], [], [])[0]:
            client, _ = place.accept()
            if os.fork() == 0:
                place.close()
                _attend(client)
            client.close()


def _attend(client: socket.socket) -> None:
    """Run the client's program in a process of its own, tell its exit code, and end it where the client is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, ancillary, _, _ = client.recvmsg(8, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    files = array.array("i", ancillary[0][2])
    sent = b""
    while len(sent) < int.from_bytes(size, "big"):
        sent += client.recv(1 << 16)
    folder, environment, arguments = json.loads(sent)
    program = os.fork()
    if program == 0:
        os.setsid()
        client.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        os._exit(_run(arguments))
    for file in files:
        os.close(file)
    ended = os.pidfd_open(program)
    if client.fileno() in select.select([client.fileno(), ended], [], [])[0]:
        os.killpg(program, signal.SIGKILL)
    _, status = os.waitpid(program, 0)
    code = os.waitstatus_to_exitcode(status)
    try:
        client.sendall(bytes([code if code >= 0 else 128 - code]))
    finally:
        os._exit(0)


def _run(arguments: Sequence[str]) -> int:
    """The exit code of a program that is given as to Python."""
    how = arguments[0] if arguments[0] in ("-m", "-c") else ""
    what, *rest = arguments[1:] if how else arguments
    sys.argv = ["-c" if how == "-c" else what, *rest]
    sys.path[0] = {"-m": os.getcwd(), "-c": ""}.get(how, str(Path(what).resolve().parent))
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - these stay open, as Python's own do
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    code: object = 0
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        elif not how:
            runpy.run_path(what, run_name="__main__")
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as Python does at the top
        sys.excepthook(*sys.exc_info())
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    serve(sys.argv[1])
