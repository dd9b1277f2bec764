"""Output that all commands share: results on stdout, everything else on stderr; JSON is one document and nothing else."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 80
_NARROWEST = 20  # columns, however few there are


def console(stderr: bool = False, to: TextIO | None = None) -> Console:
    """A console that colours on a terminal (not with NO_COLOR; elsewhere with FORCE_COLOR). Where there is no terminal it is as
    wide as COLUMNS says, else 80 columns. ``to``: another stream."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """An error as any other: the SystemExit that rich raises tears down an event loop in the middle of things."""
            raise BrokenPipeError

    stream = to or (sys.stderr if stderr else sys.stdout)
    options: dict[str, Any] = {} if stream.isatty() else {"width": _columns() or PIPED_WIDTH, "force_interactive": False}
    return Piped(file=stream, highlight=False, emoji=False, markup=False, **options)


def width() -> int:
    """Columns for text on standard output: what COLUMNS says, else the terminal's, at most 80."""
    return max(_columns() or min(shutil.get_terminal_size((PIPED_WIDTH, 0)).columns, PIPED_WIDTH), _NARROWEST)


def _columns() -> int:
    """What COLUMNS says, 0 where that is no number."""
    value = os.environ.get("COLUMNS", "")
    return int(value) if value.isdecimal() else 0


class Waiting:
    """A line at the end of a terminal that says what is waited for; ``stop`` takes it away. Nothing where there is no terminal,
    but for what is logged as ``gnothi.opening``, which takes long: there it is a line on stderr each. How far that is, in
    percent, is shown on a terminal alone. What is logged there as a warning is a line that stays, in both.

    ``screen`` is the console that is printed to meanwhile; without one, it is on stderr.
    """

    _log = logging.getLogger("gnothi.opening")

    def __init__(self, message: str, screen: Console | None = None) -> None:
        from rich.status import Status

        screen = screen or console(stderr=True)
        self._status = Status(message, console=screen) if screen.is_interactive else None
        line = partial(click.echo, file=sys.stderr)
        inform, warn = (self.say, partial(screen.print, markup=False, highlight=False)) if self._status else (line, line)
        self._handler = _LogHandler(inform, warn, logging.DEBUG if self._status else logging.INFO)
        self._level = self._log.level

    def __enter__(self) -> Self:
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.DEBUG)
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def say(self, message: str) -> None:
        if self._status:
            self._status.update(message)

    def stop(self) -> None:
        if self._handler in self._log.handlers:
            self._log.removeHandler(self._handler)
            self._log.setLevel(self._level)
        if self._status:
            self._status.stop()


class _LogHandler(logging.Handler):
    def __init__(self, inform: Callable[[str], None], warn: Callable[[str], None], level: int) -> None:
        super().__init__(level)
        self._inform, self._warn = inform, warn

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._warn(f"warning: {record.getMessage()}")
        else:
            self._inform(record.getMessage())


def print_json(document: Any) -> None:
    """One JSON document on stdout; records, numpy's numbers and what is not finite as ``runs.rows.jsonable`` writes them."""
    click.echo(json_text(document, indent=2))


def json_text(document: Any, indent: int | None = None) -> str:
    """The document as JSON that is read as it stands: what would steer a terminal or turn the order of letters is escaped; in
    another encoding than UTF-8, in which JSON is written, all but ASCII."""
    from gnothi.runs.rows import jsonable

    plain = (sys.stdout.encoding or "utf-8").lower().replace("_", "-") not in ("utf-8", "utf8")
    text = json.dumps(jsonable(document), ensure_ascii=plain, indent=indent, allow_nan=False)
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)


def clean(text: str) -> str:
    """``text`` on one line, without control characters: what models and passages say must not steer the terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(text.split()))


def wrap(text: str, width: int) -> list[str]:
    """``text``, cleaned, in lines of at most ``width`` columns (wide letters take two); never empty."""
    from rich.text import Text

    lines = Text(clean(text)).wrap(console(), width)
    return [line.plain.rstrip() for line in lines] or [""]


def cut(text: str, width: int) -> str:
    """``text``, cleaned, its end left off where it is wider than ``width`` columns."""
    from rich.cells import cell_len, set_cell_size

    text = clean(text)
    return text if cell_len(text) <= width else set_cell_size(text, width - 3).rstrip() + "..."


def definitions(rows: Iterable[tuple[str, str]], indent: int = 2) -> list[str]:
    """Terms and their explanations as lines of the width of standard output; long terms get a line of their own."""
    rows, columns = list(rows), width()
    column = min(max((len(term) for term, _ in rows), default=0), columns // 3)
    lines = []
    for term, text in rows:
        first, *rest = wrap(text, columns - indent - column - 2)
        if len(term) > column:
            lines.append(" " * indent + term)
            term = ""
        lines.append(" " * indent + f"{term:<{column}}  {first}".rstrip())
        lines += [" " * (indent + column + 2) + line for line in rest]
    return lines


def paragraph(screen: Console, text: str, style: str | None = None) -> None:
    """``text``, cleaned, in lines of the console's width, all but the first indented."""
    screen.print(textwrap.fill(clean(text), screen.width, subsequent_indent="  ", break_on_hyphens=False), style=style)
