"""A table of typed values: built once, then written for a terminal, as HTML (a page, a notebook) or as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from gnothi.report.numbers import MISSING, between, chance, interval, money, number, percent, share, signed, thousands
from gnothi.report.terminal.console import paragraph, wrap
from gnothi.stats.intervals import Interval

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Form:
    """How values are written, and their intervals: in few columns, and where there is room."""

    value: Callable[[Any], str]
    short: Callable[[Interval], str]
    long: Callable[[Interval], str]
    joined: str = "–"

    def plain(self, ends: Interval) -> str:
        """An interval in the form of its values."""
        return self.joined.join(map(self.value, ends))


def _form(value: Callable[[Any], str]) -> Form:
    def pair(ends: Interval) -> str:
        return f"[{value(ends[0])}, {value(ends[1])}]"

    return Form(lambda one: MISSING if one is None else value(one), pair, pair)


TEXT, COUNT = _form(str), _form("{:,}".format)
NUMBER, THOUSANDS, MONEY, CHANCE, THREE = map(_form, (number, thousands, money, chance, "{:.3g}".format))
SHARE = Form(share, between, interval)
PERCENT = Form(
    percent, lambda limits: " to ".join(map(percent, limits)), lambda limits: f"[{', '.join(map(percent, limits))}]", " to "
)
_few = partial(signed, digits=2)
SIGNED = Form(
    lambda one: MISSING if one is None else signed(one),
    lambda limits: " to ".join(map(_few, limits)),
    partial(interval, sign=True),
    " to ",
)


@dataclass(frozen=True, slots=True)
class Column:
    """``short``: its title on a terminal. It is shown on a ``terminal``, on a ``page``, or on both; ``below``: intervals and
    notes also on a terminal. ``shade``: the cell is darker, the larger its share; ``text``: to the left.
    Values below ``strong`` are in bold on a page."""

    title: str
    form: Form = TEXT
    short: str = ""
    terminal: bool = True
    page: bool = True
    below: bool = True
    shade: bool = False
    text: bool = False
    strong: float | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its interval, or a note in its place. None was not measured."""

    value: Any
    interval: Interval | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Values by column, the first of them its name; one alone is a heading. Text is not formatted. ``style``: on a terminal."""

    cells: Sequence[Any]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """``spare``: columns that a narrow terminal does without, by their titles there, the first of them first. What is shown of
    a column that holds no value in any row is nothing."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    name: str = ""
    spare: Sequence[str] = ()

    def __html__(self) -> str:
        """As jinja takes an object that is HTML; every text is escaped."""
        columns = self._visible("page")
        head = "".join(f'<th scope="col"{_class(self.columns[one])}>{escape(self.columns[one].title)}</th>' for one in columns)
        body = "".join(f"<tr>{''.join(self._cell(row, place) for place in columns)}</tr>" for row in self.rows)
        name = f' data-table="{self.name}"' if self.name else ""
        table = f"<table{name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div class="wide" tabindex="0">{table}</div>'

    def _cell(self, row: Row, place: int) -> str:
        column, cell = self.columns[place], _value(row.cells[place]) if place < len(row.cells) else Value("")
        small = cell.note or (column.form.long(cell.interval) if cell.interval else "")
        words = ' class="words"' if cell.note else ""
        below = f"<small{words}>{escape(small)}</small>" if small else ""
        tag, kind = ("th", ' scope="row"') if place == 0 else ("td", _class(column, cell.value))
        if column.shade:
            kind = f' class="cell" style="--share: {max(cell.value or 0, 0):g}"'
        return f"<{tag}{kind}>{escape(_text(column, cell))}{below}</{tag}>"

    def markdown(self) -> list[str]:
        """Intervals stand in brackets behind their values."""
        columns = self._visible("page")
        lines = [[self.columns[place].title for place in columns], ["---"] * len(columns)]
        for row in self.rows:
            cells = [self._plain(self.columns[place], _value(row.cells[place])) for place in columns if place < len(row.cells)]
            mark = {"bold": "**", "italic": "*"}.get(row.style, "")
            lines.append([f"{mark}{cells[0]}{mark}", *cells[1:], *[""] * (len(columns) - len(cells))])
        return [f"| {' | '.join(line)} |" for line in lines]

    def _plain(self, column: Column, cell: Value) -> str:
        spread = f" ({column.form.plain(cell.interval)})" if cell.interval else ""
        return " ".join(f"{_text(column, cell)}{spread}".split()).replace("|", "\\|")

    def show(self, console: Console) -> None:
        """In the console's width; a name keeps at least 16 columns, and folds when it is longer. Intervals and notes stand in a
        line below. Where columns were left out, a line says so."""
        lines = [line for row in self.rows for line in self._lines(row)]
        places = self._visible("terminal")
        headings = [self.columns[place].short or self.columns[place].title for place in places]
        _lay_out(
            console,
            headings,
            [([cells[one] for one in places if one < len(cells)], style) for cells, style in lines],
            self.spare,
        )

    def _lines(self, row: Row) -> list[tuple[list[str], str]]:
        cells = list(zip(self.columns, map(_value, row.cells), strict=False))
        below = [
            (one.note or (column.form.short(one.interval) if one.interval else "")) if column.below else ""
            for column, one in cells
        ]
        under = (
            [(below, "dim")] if any(text for text, column in zip(below, self.columns, strict=False) if column.terminal) else []
        )
        return [([_text(column, one) for column, one in cells], row.style), *under]

    def _visible(self, where: str) -> list[int]:
        """The columns that are shown there."""
        return [place for place, one in enumerate(self.columns) if getattr(one, where) and (not place or self._holds(place))]

    def _holds(self, place: int) -> bool:
        return any(_value(row.cells[place]).value not in (None, "", MISSING) for row in self.rows if len(row.cells) > 1)


def _value(cell: Any) -> Value:
    return cell if isinstance(cell, Value) else Value(cell)


def _text(column: Column, cell: Value) -> str:
    return cell.value if isinstance(cell.value, str) else column.form.value(cell.value)


def _class(column: Column, value: Any = None) -> str:
    if column.strong is not None and value is not None and value < column.strong:
        return ' class="best"'
    return ' class="text"' if column.text else ""


_LEAST, _MOST = 16, 44  # columns of the names


def _lay_out(console: Console, headings: Sequence[str], rows: Sequence[tuple[list[str], str]], spare: Sequence[str]) -> None:
    from rich.cells import cell_len
    from rich.text import Text

    lines = [(list(headings), "bold"), *rows]
    widths = [
        max(cell_len(cells[place]) for cells, _ in lines if len(cells) > 1 or not place) + 1 for place in range(len(headings))
    ]
    columns = list(range(1, len(headings)))
    names = min(widths[0], _MOST)
    dropped = []
    for heading in spare:
        place = headings.index(heading) if heading in headings else 0
        if min(names, _LEAST + 1) + sum(widths[one] for one in columns) > console.width and place in columns:
            columns.remove(place)
            dropped.append(heading)
    names = max(min(names, _LEAST + 1), min(names, console.width - sum(widths[place] for place in columns)))
    for cells, style in lines:
        if len(cells) == 1 and len(headings) > 1:
            paragraph(console, cells[0], style)
            continue
        folded = wrap(cells[0], names - 1)
        numbers = "".join(f"{'':{widths[place] - cell_len(cells[place])}}{cells[place]}" for place in columns)
        first = f"{folded[0]}{'':{names - 1 - cell_len(folded[0])}}{numbers}"
        for line in (first, *folded[1:]):
            console.print(Text(line.rstrip(), style), soft_wrap=True)
    if dropped:
        paragraph(console, f"no room here for {', '.join(dropped)}: use a wider terminal or --json", "dim")
