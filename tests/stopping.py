"""Programs that stop at each step of their work until they are told to go on: so a kill meets them at work, however fast the
machine is."""

from __future__ import annotations

import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
_STEP = "a step is done"


# --- in the program ---------------------------------------------------------------------------------------------------


def stops_after(owner: Any, *names: str) -> None:
    """Functions of a class or module that are steps from now on."""
    for name in names:
        setattr(owner, name, _stopping(getattr(owner, name)))


def _stopping(function: Any) -> Any:
    @functools.wraps(function)
    def stopped(*given: Any, **more: Any) -> Any:
        result = function(*given, **more)
        sys.stdout.write(f"{_STEP}\n")
        sys.stdout.flush()
        sys.stdin.readline()  # nothing more to read: it goes on without stopping
        return result

    return stopped


# --- beside it --------------------------------------------------------------------------------------------------------


def moments(steps: int, kills: int) -> list[int]:
    """After how many steps each of the ``kills`` of one piece of work of so many ``steps`` comes: drawn, the same each time,
    one of them in the middle. They never reach the end, though a kill that comes late leaves one step more behind it than is
    counted here."""
    room = steps - kills
    assert room >= 2 * kills, f"{steps} steps are too few for {kills} kills"
    middle = room // 2
    others = random.Random(steps).sample([one for one in range(1, room + 1) if one != middle], kills - 1)
    return [b - a for a, b in pairwise([0, *sorted([*others, middle])])]


class Stopping:
    """``python -m COMMAND``, which stops after its steps until ``finish`` lets it run. When it has ended, ``said`` is what it
    wrote on stdout besides, and ``returncode`` how it ended."""

    def __init__(self, *command: str, **environment: str) -> None:
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when it has ended
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, **environment},
        )
        self._stands = False
        self._said: list[str] = []

    @property
    def said(self) -> str:
        return "".join(self._said)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def go(self, steps: int) -> bool:
        """Let it do so many more, and stand there. False: it ended before."""
        assert self._process.stdout is not None
        for _ in range(steps):
            self._go_on()
            while (line := self._process.stdout.readline()) and line.strip() != _STEP:
                self._said.append(line)
            self._stands = bool(line)
            if not line:
                return False
        return True

    def go_until(self, condition: Callable[[], object]) -> None:
        """Let it do steps until that is so, and stand there."""
        while not condition():
            assert self.go(1), "it ended before"

    def interrupt(self, how: int) -> None:
        """With a signal, which it hears where it stands."""
        self._process.send_signal(how)

    def kill(self, seconds: float = 0.0, how: signal.Signals = signal.SIGKILL) -> None:
        """Where it stands, or so long after it went on: in the midst of its next step, or at the end of that."""
        if seconds:
            self._go_on()
            time.sleep(seconds)
        self._process.send_signal(how)
        self._process.communicate()
        self._errors.close()

    def finish(self) -> int:
        """How many more steps it did. Fails where it fails."""
        steps, errors = self.ended()
        assert not errors, errors
        return steps

    def ended(self) -> tuple[int, str]:
        """Let it run to its end: how many more steps it did, and what it said where it failed."""
        said, _ = self._process.communicate(timeout=PATIENCE)
        self._errors.seek(0)
        errors = self._errors.read() if self._process.returncode else ""
        self._errors.close()
        assert errors or self._process.returncode <= 0
        lines = said.splitlines(keepends=True)
        self._said += [line for line in lines if line.strip() != _STEP]
        return len(lines) - sum(line.strip() != _STEP for line in lines), errors

    def _go_on(self) -> None:
        assert self._process.stdin is not None
        if self._stands:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            self._stands = False
