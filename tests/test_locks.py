from __future__ import annotations

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
kept = hold(Path(sys.argv[1]), RuntimeError())
print("held", flush=True)
sys.stdin.read()
"""


class Busy(Exception):
    pass


def test_a_lock_is_held_once_until_it_is_closed(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    held = hold(file, Busy())
    with pytest.raises(Busy):
        hold(file, Busy())
    held.close()
    with hold(file, Busy()), pytest.raises(Busy):
        hold(file, Busy())
    hold(file, Busy()).close()


def test_a_lock_may_be_closed_by_another_thread(tmp_path: Path) -> None:
    held = hold(tmp_path / ".lock", Busy())
    thread = threading.Thread(target=held.close)
    thread.start()
    thread.join()
    hold(tmp_path / ".lock", Busy()).close()


def test_a_lock_goes_with_its_process_however_it_ends(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Busy):
            hold(file, Busy())
        other.kill()
        other.wait()
    hold(file, Busy()).close()
