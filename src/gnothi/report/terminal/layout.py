"""Paragraphs and tables of a console's width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnothi.report.terminal.console import clean, wrap

if TYPE_CHECKING:
    from rich.console import Console

Row = tuple[Sequence[str], str]
"""The cells of a row and its style; one cell alone is a heading."""
_LEAST, _MOST = 16, 44  # columns of the names


def paragraph(console: Console, text: str, style: str | None = None) -> None:
    """``text``, cleaned, in lines of the console's width, all but the first indented."""
    console.print(textwrap.fill(clean(text), console.width, subsequent_indent="  ", break_on_hyphens=False), style=style)


def show_table(console: Console, headings: Sequence[str], rows: Sequence[Row], spare: Sequence[str] = ()) -> None:
    """Names in the first column, then numbers. Columns without a number are left out.

    Where there is no room, so are those that are ``spare``, the first of them first, and a line below says so: a name keeps at
    least 16 columns, and folds when it is longer."""
    from rich.cells import cell_len
    from rich.text import Text

    lines = [(["", *headings[1:]] if not headings[0] else list(headings), "bold"), *rows]
    widths = [max(cell_len(cells[place]) for cells, _ in lines if len(cells) > 1) + 1 for place in range(len(headings))]
    kept = [place for place in range(1, len(headings)) if any(cells[place] not in ("", "-") for cells, _ in rows if cells[1:])]
    names = min(widths[0], _MOST)
    dropped = []
    for heading in spare:
        place = headings.index(heading)
        if min(names, _LEAST + 1) + sum(widths[one] for one in kept) > console.width and place in kept:
            kept.remove(place)
            dropped.append(heading)
    names = max(min(names, _LEAST + 1), min(names, console.width - sum(widths[place] for place in kept)))
    for cells, style in lines:
        if len(cells) == 1:
            paragraph(console, cells[0], style)
            continue
        folded = wrap(cells[0], names - 1)
        numbers = "".join(f"{'':{widths[place] - cell_len(cells[place])}}{cells[place]}" for place in kept)
        first = f"{folded[0]}{'':{names - 1 - cell_len(folded[0])}}{numbers}"
        for line in (first, *folded[1:]):
            console.print(Text(line.rstrip(), style), soft_wrap=True)
    if dropped:
        paragraph(console, f"no room here for {', '.join(dropped)}: use a wider terminal or --json", "dim")
