"""One trial: the command line run in a process of its own that is watched, and what it did that it must not."""

from __future__ import annotations

import contextlib
import io
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._faults_own_time import Own
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Prompt

SECONDS = 10.0
"""In which a command has to be done where it has a core to itself: see ``patience``."""
DATA_BYTES = 2 << 30
"""Memory of its own that a trial may take: beyond it, allocating fails."""
EXITS = (0, 1, 2, 3)
STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Letters that steer a terminal or turn the order of what is read."""
_RUNS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pickle.find_class", "socket.connect")
_WRITES = ("os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.symlink", "os.link", "os.truncate", "shutil.rmtree")
_TRACEBACK = re.compile(r"Traceback \(most recent.*\n(?:\s.*\n)*(.*)")
_HALF_A_LOOP = "'_UnixSelectorEventLoop' object has no attribute '_ssock'"
"""What Python itself prints, beside our sentence, where no file handles are left to make an event loop of."""
_PASSING = re.compile(r"^/(dev|proc|sys)/")


@dataclass(slots=True)
class Watched:
    """What audit events told: ``wrote`` outside the folder, ``read`` what no command was given, ``ran`` code."""

    folder: Path | None = None
    forbidden: str = ""
    reports: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event == "open":
            path, mode, flags = (*arguments, None, None, None)[:3]
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            self._check_path(path, bool(writes or (isinstance(mode, str) and set(mode) & set("wax+"))))
        elif event in _WRITES and not (event == "os.mkdir" and os.path.isdir(arguments[0])):
            self._check_path(arguments[-1 if event in ("os.rename", "os.link") else 0], True)
        elif event in _RUNS:
            self.reports.append(f"runs: {event} {str(arguments)[:80]}")

    def _check_path(self, path: object, writes: bool) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        full = os.path.realpath(os.path.join(os.getcwd(), os.fsdecode(path)))
        if self.forbidden and self.forbidden in full:
            self.reports.append(f"{'writes' if writes else 'reads'} outside: {self.forbidden}")
        elif (
            writes and not full.startswith(f"{self.folder}{os.sep}") and not _PASSING.match(full) and "__pycache__" not in full
        ):
            self.reports.append(f"writes outside: {full}")


WATCH = Watched()


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str
    problems: tuple[str, ...] = ()


def script(prompt: Prompt) -> Reply:
    """Sure of every other question, so that a gate has something to decide."""
    sure = bool(prompt.passages) or len(prompt.question) % 2 == 0
    name = "Ada Bram" if sure else "nobody"
    text = name if prompt.answer_so_far.endswith("the answer is") else f"So the answer is {name}."
    return Reply(text, doubt=0.0 if sure else 5.0)


@contextlib.contextmanager
def scripted(script: Callable[[Prompt], Reply] = script) -> Iterator[None]:
    """``--model lab`` is answered by the script."""
    from gnothi.models.wrappers import Seeded, Traced
    from gnothi.session import sources

    real = sources.open_model

    def open_model(spec: str, *rest: Any, **more: Any) -> Any:
        if spec != "lab":
            return real(spec, *rest, **more)
        return Traced(Seeded(Scripted(script, name="lab", thresholds={"gram": -6.0})))

    sources.open_model = open_model
    try:
        yield
    finally:
        sources.open_model = real


def patience(seconds: float = SECONDS) -> float:
    """``seconds``, or more of them where the machine's cores are shared with others."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Late(BaseException):
    """The time that this process has is over."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[Own]:
    """Raises Late in this process after so many seconds of its own, which stand while others have the cores."""
    clock = Own(os.getpid())

    def late(*_: object) -> None:
        if (left := patience(seconds) - clock.seconds) > 0:
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.5))
        else:
            raise Late("".join(traceback.format_stack(sys._getframe(1))[-3:]))

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield clock
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def call(arguments: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """The command line in this process, in the working folder, watched."""
    from gnothi.cli import main

    out, err, problems = io.StringIO(), io.StringIO(), []
    code = -1
    WATCH.reports.clear()
    WATCH.folder = Path.cwd().resolve()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited(seconds):
            code = main.run(arguments)
    except Late as error:
        problems.append(f"hangs: {where(error)}")
    except MemoryError as error:
        problems.append(f"memory: {where(error)}")
    except BaseException as error:  # noqa: BLE001 - what it is, is the finding
        problems.append(f"traceback: {type(error).__name__} {where(error)}")
    finally:
        WATCH.folder = None
    shown, said = out.getvalue(), err.getvalue()
    if not problems:
        if code not in EXITS:
            problems.append(f"exit code {code}")
        told = _TRACEBACK.search(said) or _TRACEBACK.search(shown)
        if told and _HALF_A_LOOP not in told[1]:
            problems.append(f"traceback: shown: {told[1][:80]}")
        if code and not said.strip():
            problems.append(f"exit code {code} without a word")
    if (found := STEERING.search(shown) or STEERING.search(said)) is not None:
        text = shown if STEERING.search(shown) else said
        problems.append(f"steers the terminal: {text[max(0, found.start() - 30) : found.end()][:60]!r}")
    problems += dict.fromkeys(WATCH.reports)
    return Outcome(code, shown, said, tuple(problems))


def where(error: BaseException) -> str:
    """File and function of the innermost frame of ours, and the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/gnothi/" in frame.filename]
    at = ours[-1] if ours else frames[-1]
    last = frames[-1]
    return f"{Path(at.filename).name}:{at.name} ({Path(last.filename).name}:{last.name})"


def confine() -> None:
    """This process: no more than the memory there is for a trial; what it opens is watched."""
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    sys.addaudithook(WATCH)
