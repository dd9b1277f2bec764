"""``gnothi serve`` as a process: it says where it answers, finishes what it began, and names what is missing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

import gnothi as package
from tests.command_line import Run
from tests.messages import complained
from tests.patience import PATIENCE
from tests.stopping import ROOT

KNOWN = {"model": "gnothi/direct", "stream": True, "messages": [{"role": "user", "content": "Who directed The Amber Harbour?"}]}


def test_what_is_not_installed_is_named(gnothi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("gnothi.serving")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    complained(gnothi("serve"), 3)


def test_a_port_that_is_taken_is_told(gnothi: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = gnothi("serve", "--port", str(taken.getsockname()[1]))
    assert (code, "Address already in use" in err, "--port 8001" in err) == (3, True, True)


SCRIPTED = """
import sys
from gnothi.cli import main
from gnothi.session import sources
from gnothi.testing.model import Scripted
from tests.command_line import script, stand_in
sources.open_model = stand_in(Scripted(script, name="lab"))
main.main(sys.argv[1:])
"""
"""The command with a scripted model."""


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_the_stream_is_over(ending: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(package.__file__).parents[1]), str(ROOT)])}
    command = [sys.executable, "-c", SCRIPTED, "serve", "--method", "direct", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "/v1 answers as" in line)
        request = urllib.request.Request(f"{line.partition('/v1')[0]}/v1/chat/completions", json.dumps(KNOWN).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as stream:
            first = stream.readline()
            process.send_signal(ending)
            rest = stream.read()
        told: list[str] = []
        reading = threading.Thread(target=lambda: told.extend(process.stderr or ()))
        reading.start()
        assert process.wait(PATIENCE) == 0
        reading.join()
    assert first.startswith(b"data: {")
    assert rest.endswith(b"data: [DONE]\n\n")
    assert "Traceback" not in "".join(told)
