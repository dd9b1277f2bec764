"""Tables as text: a row is ``head: value; head: value``, as a reader of one row must know what its cells mean.

What merged cells span is said once under all its heads; empty cells are left out. A table that only arranges text (one column,
one row, long cells without heads) is text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from gnothi.retrieval.ingest.split import collapse, count_words

MOST_COLUMNS = 16_384  # of a spreadsheet
_LOOKED_AT = 50  # rows that are looked at to tell heads from values
_CELLS = 20_000
_LONG_HEAD = 80  # characters
_LONG_CELL = 60  # words: so much text is arranged by a table, not listed in it
_VALUE = re.compile(r"[+\-−–(~<>≈]?\s?[€$£¥₹]?\s?\d[\d\s.,'’:/%)–-]*(?:[^\W\d]{1,3}\.?[²³]?|[€$£¥₹%°]{1,2}C?)?")
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")


class Cell(NamedTuple):
    """``columns`` and ``rows`` are those it spans; ``head`` where the document marks it as one."""

    text: str
    columns: int = 1
    rows: int = 1
    head: bool = False


@dataclass(frozen=True, slots=True)
class TableText:
    """A row, or text of a table that is none. ``group`` is the row above that names this and the next ones."""

    text: str
    kind: Literal["row", "text"] = "row"
    group: str = ""


class _Placed(NamedTuple):
    text: str
    column: int
    columns: int
    head: bool


_Row = list[_Placed]


_MISSING = re.compile(r"unknown|none|nil|missing|closed|pending|tb[ad]|various|\?+|no data|not .+|see .+", re.IGNORECASE)
"""What stands for a value that is not there."""


class Table:
    """Takes rows one by one and gives the text of each as soon as it is clear which are heads.

    ``heads`` is the number of rows of heads, None where only the cells may tell; then, where none is marked, the first row is
    taken for heads if it looks like that. ``spreadsheet``: rows are rows, however few or long, and mostly have heads; names
    over numbers below an empty row are the heads of another table.
    ``unsure`` holds the heads that were taken for such although no column of values shows the difference, those of the first
    table where there are several. ``twice`` is the name for which a first row of names was not.
    """

    def __init__(self, heads: int | None = None, caption: str = "", spreadsheet: bool = False) -> None:
        self.caption = collapse(caption)
        self.layout = False
        self.unsure: list[str] = []
        self._doubted = False
        self.twice = ""
        self.heads: list[str] = []
        self._marked = heads
        self._spreadsheet = spreadsheet
        self._group = ""
        self._unsaid = ""  # a group that no row has followed yet
        self._width = 0
        self._waiting: list[_Row] = []
        self._gaps: list[int] = []  # where in them empty rows were
        self._cells = 0
        self._begun = self._known = False  # nothing waits; heads were looked for
        self._spanning: dict[int, tuple[int, _Placed]] = {}  # by column: rows that are left of a cell from above
        self._pairs = False
        self._count = 0

    def add(self, cells: Sequence[Cell]) -> Iterator[TableText]:
        row = self._placed(cells)
        if not any(cell.text.strip() for cell in cells):  # what reaches down from above is said there
            if self._spreadsheet and not _filled(row) and (self._begun or self._waiting):
                self._begun = False
                if self._gaps[-1:] != [len(self._waiting)]:
                    self._gaps.append(len(self._waiting))
            return
        if self._begun:
            yield from self._say(row)
            return
        self._waiting.append(row)
        self._cells += len(row)
        if self.layout or len(self._waiting) > _LOOKED_AT or self._cells > _CELLS:
            yield from self._begin()

    def end(self) -> Iterator[TableText]:
        if not self._begun:
            yield from self._begin()
        yield from self._close()

    def _close(self) -> Iterator[TableText]:
        if self._unsaid:
            yield TableText(self._unsaid, "text")
        if not self._count and (words := "; ".join(filter(None, [self.caption, *self.heads]))):
            yield TableText(words, "text")  # heads without a row

    def arranges(self) -> Iterator[TableText]:
        """It is known to arrange text only."""
        self.layout = True
        if not self._begun:
            yield from self._begin()

    @property
    def has_heads(self) -> bool:
        return bool(self.heads) or any(cell.head for row in self._waiting for cell in row)

    def _placed(self, cells: Sequence[Cell]) -> _Row:
        """The cells with their columns, with those that reach down from above."""
        row: _Row = []
        column = 0
        waiting = iter(cells[:MOST_COLUMNS])
        above = self._spanning
        self._spanning = {}
        while column < MOST_COLUMNS:
            if column in above:
                rows_left, placed = above[column]
                if rows_left > 1:
                    self._spanning[column] = (rows_left - 1, placed)
            elif cell := next(waiting, None):
                columns = min(max(cell.columns, 1), MOST_COLUMNS - column)
                placed = _Placed(collapse(cell.text), column, columns, cell.head)
                if cell.rows > 1:
                    self._spanning[column] = (cell.rows - 1, placed)
            elif further := [place for place in above if place > column]:
                column = min(further)
                continue
            else:
                break
            row.append(placed)
            column += placed.columns
        return row

    def _begin(self) -> Iterator[TableText]:
        self._begun = True
        rows, self._waiting, self._cells = self._waiting, [], 0
        gaps, self._gaps = self._gaps, []
        held: list[_Row] = []
        for start, end in pairwise([0, *gaps, len(rows)]):
            part = rows[start:end]
            if self._is_another(held, part):
                yield from self._take(held)
                yield from self._close()
                self.caption = self._group = self._unsaid = ""
                self._count, self._known = 0, False
                yield from self._take(part)
                held = []
            else:
                held += part
        yield from self._take(held)

    def _is_another(self, above: list[_Row], rows: list[_Row]) -> bool:
        """Whether rows are a table of their own, not the rest of one ``above``, of which there must be more than a caption."""
        if len(rows) < 2 or not (self._known or (len(above) > 1 and any(len(_filled(row)) > 1 for row in above))):
            return False
        heads = self.heads if self._known else [cell.text for cell in _filled(above[0])]
        small = any(cell.text[0].islower() for cell in _filled(rows[0])) and not any(head[:1].islower() for head in heads)
        if small or any(_MISSING.fullmatch(cell.text) for cell in _filled(rows[0])):
            return False
        table = Table(spreadsheet=True)
        next(table._take(rows), None)
        return bool(table.heads) and not table.unsure

    def _take(self, rows: list[_Row]) -> Iterator[TableText]:
        """Say the rows, the first ones after a look at which of them are heads."""
        if self._known:
            for row in rows:
                yield from self._say(row)
            return
        self._known, self.heads = True, []
        self._width = max((_end(row) for row in rows), default=0)
        if not self.layout and self._marked is None:
            rows = self._captioned(rows)
        self.layout |= not self._spreadsheet and not self._marked and self._is_layout(rows)
        number = 0 if self.layout else self._number(rows)
        if number:
            self.heads = self._joined(rows[:number])
            self.unsure = self.unsure or (self.heads if self._doubted else [])
        elif not self.layout:
            self._pairs = self._width == 2 and bool(rows) and all(row[0].head for row in rows)
        for row in rows[number:]:
            yield from self._say(row)

    def _captioned(self, rows: list[_Row]) -> list[_Row]:
        """Without the rows at the top that hold one cell, where others hold more: they say what the table is."""
        above = 0
        while above < len(rows) - 2 and self._width > 1 and len(_filled(rows[above])) == 1:
            above += 1
        if above and len(_filled(rows[above])) > 1:
            self.caption = " - ".join(filter(None, [self.caption, *(_filled(row)[0].text for row in rows[:above])]))
            return rows[above:]
        return rows

    def _is_layout(self, rows: list[_Row]) -> bool:
        if self._width < 2:
            return True
        if any(cell.head for row in rows for cell in row):
            return False
        return len(rows) == 1 or any(count_words(cell.text) > _LONG_CELL for row in rows for cell in row)

    def _number(self, rows: list[_Row]) -> int:
        """Of rows of heads."""
        if self._marked is not None:
            return min(self._marked, len(rows))
        marked = 0
        while marked < len(rows) and all(cell.head for cell in _filled(rows[marked])):
            marked += 1
        if marked:
            return marked if marked < len(rows) else 1
        if any(cell.head for row in rows for cell in row[:1]) or not self._looks_like_heads(rows):
            return 0
        number = 1
        while number < len(rows) - 1 and any(cell.columns > 1 for cell in rows[number - 1]) and _all_names(rows[number]):
            number += 1
        return number

    def _looks_like_heads(self, rows: list[_Row]) -> bool:
        if len(rows) < 2:
            return False
        names = [cell.text.casefold() for cell in _filled(rows[0])]
        below: dict[int, list[str]] = {}
        heads = {id(cell) for cell in rows[0]}  # which may reach down
        for row in rows[1:]:
            for cell in _filled(row) if row != rows[0] else ():  # the heads again, as on each page
                if id(cell) not in heads:
                    below.setdefault(cell.column, []).append(cell.text)
        if len(names) * 2 < self._width or not _all_names(rows[0]):
            return False
        if any(cell.text in below.get(cell.column, ()) for cell in rows[0] if cell.text):
            return False
        for cell in _filled(rows[0]):
            values = below.get(cell.column, [])
            if _YEAR.fullmatch(cell.text) and sum(map(bool, map(_YEAR.fullmatch, values))) * 2 > len(values):
                return False
        sure = any(_differs(cell, below.get(cell.column, [])) for cell in _filled(rows[0]))
        counts = Counter(names)
        twice = next((cell.text for cell in _filled(rows[0]) if counts[cell.text.casefold()] > 1), "")
        if twice and not (sure and self._spreadsheet):
            self.twice = twice
            return False
        self._doubted = not sure or bool(twice)
        return sure or self._spreadsheet or self._width > 2

    def _joined(self, rows: list[_Row]) -> list[str]:
        """One head a column: that of a group of columns, then its own."""
        heads: list[list[str]] = [[] for _ in range(self._width)]
        for row in rows:
            for cell in _filled(row):
                for column in range(cell.column, min(cell.column + cell.columns, self._width)):
                    if cell.text not in heads[column]:
                        heads[column].append(cell.text)
        return [" ".join(parts).rstrip(": ") for parts in heads]

    def _say(self, row: _Row) -> Iterator[TableText]:
        filled = _filled(row)
        if self.layout:
            self._count += len(filled)
            yield from (TableText(cell.text, "text") for cell in filled)
            return
        if len(filled) == 1 and 1 < self._width <= filled[0].columns:
            if self._unsaid:
                yield TableText(self._unsaid, "text")
            self._group = self._unsaid = filled[0].text
            return
        if self.heads and [cell.text for cell in filled] == self.heads:
            return
        self._count += 1
        self._unsaid = ""
        if self._pairs or (not self.heads and self._width == 2 and len(filled) == 2 and not self._spreadsheet):
            first, *rest = (cell.text for cell in filled)
            text = ": ".join([first.rstrip(": "), "; ".join(rest)]) if rest else first
            yield TableText(text, "text" if self._pairs else "row", self._group)
            return
        yield TableText("; ".join(self._named(cell) for cell in filled), "row", self._group)

    def _named(self, cell: _Placed) -> str:
        heads = dict.fromkeys(filter(None, self.heads[cell.column : cell.column + cell.columns]))
        return f"{' / '.join(heads)}: {cell.text}" if heads else cell.text


def _filled(row: _Row) -> _Row:
    return [cell for cell in row if cell.text]


def _end(row: _Row) -> int:
    """The number of columns up to the last one that holds something."""
    return max((cell.column + cell.columns for cell in row if cell.text), default=0)


def _all_names(row: _Row) -> bool:
    return all(
        len(cell.text) <= _LONG_HEAD and (not _VALUE.fullmatch(cell.text) or _YEAR.fullmatch(cell.text))
        for cell in _filled(row)
    )


def _differs(head: _Placed, values: list[str]) -> bool:
    """Whether a name stands over numbers, dates or amounts."""
    return not _VALUE.fullmatch(head.text) and sum(map(bool, map(_VALUE.fullmatch, values))) * 5 >= len(values) * 4 > 0
