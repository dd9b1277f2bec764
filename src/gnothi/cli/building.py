"""What building an index and building a graph show: progress on standard error, and what was left out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gnothi.cli.saying import say
from gnothi.naming import on_the_command_line
from gnothi.report.terminal.console import clean
from gnothi.retrieval import left_out

if TYPE_CHECKING:
    from gnothi.retrieval.sources import Listing, SourcesReport

P = TypeVar("P")

UNFINISHED = "a build is under way or was interrupted: run its command again to complete it."

_SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_FRAMES = 10.0, 0.1


@contextmanager
def progress(
    bar: Callable[[P, float], tuple[float, float, str]], line: Callable[[P, float], str]
) -> Iterator[Callable[[P], None]]:
    """A bar with time left on a terminal, a plain line now and then elsewhere.

    Of what is reported and the seconds since the start, ``bar`` makes done, total and a label, ``line`` a line."""
    started = time.monotonic()
    if not sys.stderr.isatty():
        yield _at_most_every(_SECONDS_BETWEEN_LINES, lambda one: say(line(one, time.monotonic() - started)))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("reading", total=None)

        def show(one: P) -> None:
            done, total, label = bar(one, time.monotonic() - started)
            bars.update(task, completed=done, total=total, description=label)

        yield _at_most_every(_SECONDS_BETWEEN_FRAMES, show)


def _at_most_every(seconds: float, show: Callable[[P], None]) -> Callable[[P], None]:
    last = time.monotonic()

    def maybe(one: P) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= seconds:
            last = now
            show(one)

    return maybe


def warn_of(listing: Listing, what: str, happened: str) -> None:
    """How many there were, and the first of them; nothing where there were none."""
    if not listing.count:
        return
    say(f"warning: {count(listing.count, what)} {happened}")
    for line in listing.first:
        say(f"  {clean(on_the_command_line(line))}")
    if listing.first and listing.count > len(listing.first):
        say(f"  ... and {listing.count - len(listing.first):,} more")


def left(report: SourcesReport) -> str:
    """Files that moved or went, to be told among others."""
    told = ((report.moved, "moved"), (report.deleted, "deleted"))
    return "".join(f", {number:,} {how}" for number, how in told if number)


def say_gone(report: SourcesReport) -> None:
    if report.deleted:
        more = f" and {report.deleted - 5:,} more" if report.deleted > 5 else ""
        say(f"no longer there, taken out: {clean(', '.join(report.gone.first[:5]))}{more}")


def count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def unread(spec: str) -> str:
    """What else may be why a search of an index found nothing: a sentence, or nothing."""
    folder = spec.removeprefix("dense:").removeprefix("hybrid:").removeprefix("bm25:")
    left = left_out.read(Path(folder))
    out, noted = sum(one.unreadable for one in left), len({one.path for one in left if one.read})
    told = [f"{count(out, 'file')} could not be read"] * bool(out) + [f"{count(noted, 'file')} read with a notice"] * bool(
        noted
    )
    return f"{', '.join(told)}: gnothi index info {folder} says which." if told else ""
