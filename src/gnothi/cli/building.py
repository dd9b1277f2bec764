"""What building an index and building a graph show: progress on standard error, and what was left out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gnothi.cli.saying import say
from gnothi.errors import counted
from gnothi.naming import on_the_command_line
from gnothi.report.terminal.console import clean, print_json
from gnothi.retrieval import left_out

if TYPE_CHECKING:
    from gnothi.retrieval.sources import SourcesReport

P = TypeVar("P")

UNFINISHED = "a build is under way, failed or was interrupted: run its command again to complete it."

_SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_FRAMES = 10.0, 0.1


@contextmanager
def progress(
    bar: Callable[[P, float], tuple[float, float, str]], line: Callable[[P, float], str], kept: str
) -> Iterator[Callable[[P], None]]:
    """A bar with time left on a terminal, a plain line now and then elsewhere; where the user stops it, what is ``kept``.

    Of what is reported and the seconds since the start, ``bar`` makes done, total and a label, ``line`` a line."""
    try:
        with _shown(bar, line) as show:
            yield show
    except KeyboardInterrupt:
        say(f"Stopped. {kept}")
        raise


@contextmanager
def _shown(
    bar: Callable[[P, float], tuple[float, float, str]], line: Callable[[P, float], str]
) -> Iterator[Callable[[P], None]]:
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


def _warn(report: SourcesReport) -> None:
    """How many files and lines were left out or noted, and the first of them; what is gone."""
    for listing, what, happened in (
        (report.unreadable, "file", "not readable, or not to the end"),
        (report.skipped, "file", "skipped"),
        (report.invalid, "invalid line", "left out"),
        (report.notices, "notice", "on what was read"),
    ):
        if listing.count:
            say(f"warning: {counted(listing.count, what)} {happened}")
            for line in listing.first:
                say(f"  {clean(on_the_command_line(line))}")
            if listing.first and listing.count > len(listing.first):
                say(f"  ... and {listing.count - len(listing.first):,} more")
    if report.deleted:
        more = f" and {report.deleted - 5:,} more" if report.deleted > 5 else ""
        say(f"no longer there, taken out: {clean(', '.join(report.gone.first[:5]))}{more}")


def end(
    out: str, report: SourcesReport, holds: str, figures: Mapping[str, object], warnings: Iterable[str], as_json: bool
) -> int:
    """Say what a build did, and what it left out; ``holds`` and ``figures`` are what the index has now. The exit code."""
    _warn(report)
    for warning in warnings:
        say(warning)
    if as_json:
        listings = ("invalid", "skipped", "unreadable")
        document = {"path": out, **figures}
        document |= {key: getattr(report, key) for key in ("sources", "unchanged", "moved", "deleted")}
        document |= {key: getattr(report, key).count for key in listings}
        document |= {f"{key}_first": getattr(report, key).first for key in listings[:2]}
        for key, listing in (("unreadable_first", report.unreadable), ("notices", report.notices)):
            document[key] = [on_the_command_line(line) for line in listing.first]
        print_json(document | {"seconds": round(report.seconds, 3)})
    else:
        changes = ((report.moved, "moved"), (report.deleted, "deleted"))
        left = "".join(f", {number:,} {how}" for number, how in changes if number)
        read = f"from {counted(report.sources, 'file')} ({report.unchanged:,} unchanged{left}) in {report.seconds:.1f} s"
        click.echo(f"{out}: {holds} {read}")
    return 1 if report.unreadable.count else 0


def unread(spec: str) -> str:
    """What else may be why a search of an index found nothing: a sentence, or nothing."""
    folder = spec.removeprefix("dense:").removeprefix("hybrid:").removeprefix("bm25:")
    left = left_out.read(Path(folder))
    out, noted = sum(one.unreadable for one in left), len({one.path for one in left if one.read})
    problems = [f"{counted(out, 'file')} could not be read"] * bool(out) + [
        f"{counted(noted, 'file')} read with a notice"
    ] * bool(noted)
    return f"{', '.join(problems)}: gnothi index info {folder} says which." if problems else ""
