"""How far a run is, on stderr: a bar with rate and time left on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from gnothi.cli.saying import say
from gnothi.models.remote.budget import Budget
from gnothi.report.numbers import lasting
from gnothi.report.terminal import console as terminal
from gnothi.runs.rows import Row
from gnothi.session.watch import Watch

LINE_EVERY = 60.0
"""Seconds between two lines where stderr is no terminal: a log stays readable."""
SHOWN = 4
"""Methods whose calls are told one by one."""


class RunProgress:
    """Counts finished questions. Use as a context manager; call ``advance`` for each."""

    def __init__(self, total: int, done: int, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

        console = terminal.console(stderr=True)
        self.total, self.done, self.failed = total, done, 0
        self._start, self._started_with, self._last_line = time.monotonic(), done, time.monotonic()
        self._bar: Any = None
        self._note = ""
        self._left: float | None = None
        if console.is_interactive:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
            )
            self._bar = _bar(*columns, console=console, transient=True)
            self._task = self._bar.add_task(label, total=total, completed=done, rate="", left="")
        self._label = label

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def reach(self, done: int, note: str = "") -> None:
        """So many are done; where work goes on from an earlier one, the first call may jump."""
        if self.done == self._started_with and done > self.done + 1:
            self._started_with = done - 1
        self.done = done - 1
        self.advance(False, note)

    def advance(self, failed: bool, note: str = "") -> None:
        """``note`` is shown behind the rate: what it cost so far, say."""
        self.done += 1
        self.failed += failed
        self._note = note
        self._show()

    def pulse(self, read: int, calls: Mapping[str, int], left: float | None) -> None:
        """Time passes. ``read`` tokens of prompts were read so far, and so many ``calls`` done, by method; ``left`` seconds,
        where more is known than the number of answers so far."""
        self._left = left
        below = f"{read:,} prompt tokens read, calls done: {_called(calls)}" if read or calls else ""
        if self._bar:
            self._bar.below = below
        self._show(below)

    def _show(self, below: str = "") -> None:
        now = time.monotonic()
        new, passed = self.done - self._started_with, now - self._start
        rate = f", {_rate(new / max(passed, 1e-9))}" if new else ""
        broken = (f", {self.failed} failed" if self.failed else "") + (f", {self._note}" if self._note else "")
        if self._bar:
            self._bar.update(self._task, completed=self.done, rate=f"{rate[2:]}{broken}", left=self._to_wait(new, passed))
        elif now - self._last_line >= LINE_EVERY:
            self._last_line = now
            left = f", {self._to_wait(new, passed)}" if new else f" after {lasting(passed)}"
            details = f"; {below}" if below else ""
            say(f"{self._label}: {self.done} of {self.total}{broken}{rate}{left}{details}")

    def _to_wait(self, new: int, passed: float) -> str:
        if not new:
            return ""
        left = (self.total - self.done) * passed / new if self._left is None else self._left
        return f"about {lasting(left)} left"


def _rate(a_second: float) -> str:
    return f"{a_second:.1f}/s" if a_second >= 1 else f"{60 * a_second:.1f}/min"


def _called(calls: Mapping[str, int]) -> str:
    """Of the first few methods; there may be dozens."""
    shown = [f"{name} {count:,}" for name, count in list(calls.items())[:SHOWN]]
    others = list(calls.values())[SHOWN:]
    return ", ".join([*shown, f"{len(others)} more methods {sum(others):,}"] if others else shown) or "none"


def _bar(*columns: Any, **options: Any) -> Any:
    """A bar with a line of text ``below`` it."""
    from rich.progress import Progress
    from rich.text import Text

    class Bar(Progress):
        below = ""

        def get_renderables(self) -> Iterator[Any]:
            yield self.make_tasks_table(self.tasks)
            if self.below:
                yield Text(self.below, "dim", overflow="ellipsis", no_wrap=True)

    return Bar(*columns, **options)


class ProgressWatch(Watch):
    """Shows on stderr what is opened, in a spinner, and how far answering is, in a bar; ``name`` in place of the data set's.
    ``budget``: what models behind an API were paid, None without them. ``quiet``: only warnings are said."""

    def __init__(self, name: str | None = None, quiet: bool = False) -> None:
        self._shown, self._name, self._quiet = contextlib.ExitStack(), name, quiet
        self.budget: Budget | None = None
        self._progress: RunProgress | None = None
        self._waiting: terminal.Waiting | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    @property
    def kept(self) -> str:
        """How much is finished, in words."""
        if (bar := self._progress) is None:
            return "What is finished is"
        return f"{bar.done - bar.failed} of {bar.total} answers are"

    def paying(self, budget: Budget) -> None:
        self.budget = budget

    def opening(self, what: str) -> None:
        if self._progress is None:
            self._waiting = self._shown.enter_context(terminal.Waiting(f"opening {what} ..."))

    def waiting(self, message: str) -> terminal.Waiting:
        return terminal.Waiting(message)

    def counting(self, total: int, done: int, label: str) -> RunProgress:
        return RunProgress(total, done, label)

    def asking(self, total: int, done: int, what: str) -> None:
        self._opened()
        self._progress = self._shown.enter_context(RunProgress(total, done, self._name or what))

    def row(self, row: Row, label: str) -> None:
        if self._progress is not None:
            self._progress.advance(row.failed, label)

    def pulse(self, read: int, calls: Mapping[str, int], left: float | None) -> None:
        if self._progress is not None:
            self._progress.pulse(read, calls, left)

    def _opened(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()

    def info(self, text: str) -> None:
        self._opened()
        if not self._quiet:
            say(text)

    def warn(self, text: str) -> None:
        self._opened()
        say(f"warning: {text}")
