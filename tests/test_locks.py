from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gnothi.locks import hold

HOLDER = """
import sys
from pathlib import Path
from gnothi.locks import hold
kept = hold(Path(sys.argv[1]), RuntimeError, '')
print("held", flush=True)
sys.stdin.read()
"""


class Busy(Exception):
    pass


def test_a_lock_is_held_once_until_it_is_closed(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    held = hold(file, Busy, "busy.")
    with pytest.raises(Busy):
        hold(file, Busy, "busy.")
    held.close()
    with hold(file, Busy, "busy."), pytest.raises(Busy):
        hold(file, Busy, "busy.")
    hold(file, Busy, "busy.").close()


def test_a_lock_may_be_closed_by_another_thread(tmp_path: Path) -> None:
    held = hold(tmp_path / ".lock", Busy, "busy.")
    thread = threading.Thread(target=held.close)
    thread.start()
    thread.join()
    hold(tmp_path / ".lock", Busy, "busy.").close()


def test_a_lock_goes_with_its_process_however_it_ends(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        # Some systems of files tell another device than the lock's (overlays of containers), others nothing.
        about, locks = os.stat(file), Path("/proc/locks")
        place = f" {os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino} "
        shown = locks.exists() and place in locks.read_text()
        told = f" It is held by process {other.pid}, since .*:.*" if shown else ""
        with pytest.raises(Busy, match=rf"^busy\.{told}\.?$"):
            hold(file, Busy, "busy.")
        other.kill()
        other.wait()
    hold(file, Busy, "busy.").close()
