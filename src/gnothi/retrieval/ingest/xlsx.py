"""XLSX, by python-calamine (``pip install 'gnothi[documents]'``) in a process of its own: each row of a sheet is a passage.

What the file unpacks to is counted before: calamine trusts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

from gnothi.retrieval.ingest.archive import Archive
from gnothi.retrieval.ingest.base import Block, Unreadable
from gnothi.retrieval.ingest.office import main_part, outline
from gnothi.retrieval.ingest.tables import MOST_COLUMNS, Cell, Table


def blocks(path: Path) -> Iterator[Block]:
    """Run by ``bounded`` alone: a sheet that says it is large takes memory for all cells that it does not hold."""
    from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum

    with closing(Archive(path, "an XLSX file")) as archive:
        if main_part(archive, "xl/workbook.xml") not in archive:
            raise archive.unreadable("it holds no workbook")
        document = outline(archive)
        archive.count_all()
    try:
        book = CalamineWorkbook.from_path(str(path))
    except CalamineError as error:
        raise Unreadable(f"{path} is not an XLSX file that can be read: {error}. Save it again.") from None
    for number, about in enumerate(book.sheets_metadata, 1):
        name = about.name
        if about.visible != SheetVisibleEnum.Visible:
            yield document.notice(f"has a hidden sheet {name!r}, which is left out")
            continue
        yield from document.enter(2, name)
        try:
            sheet = book.get_sheet_by_name(name)
            rows = sheet.iter_rows()
            spans = dict(_merged(sheet))
        except CalamineError as error:  # a chart, or damaged: the others may be fine
            yield document.notice(f"has a sheet {name!r} that cannot be read: {error}")
            continue
        table, covered = Table(spreadsheet=True), dict[int, int]()
        first = sheet.start or (0, 0)
        read = path.stat().st_size * number // len(book.sheet_names)
        for place, row in enumerate(rows, first[0]):
            cells = _cells(row, place, first[1], spans, covered)
            yield from document.row_blocks(table, table.add(cells), read, {"sheet": name})
        yield from document.row_blocks(table, table.end(), read, {"sheet": name})
        if table.unsure:
            yield document.notice(f"has a sheet {name!r} that is read with its first row as the names of columns")
        if table.twice:
            yield document.notice(
                f"has a sheet {name!r} that is read without names of columns, since it has {table.twice!r:.60} twice"
            )


def _merged(sheet: object) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Cells over several columns or rows: the first one's place, and how many it spans."""
    for (top, left), (bottom, right) in getattr(sheet, "merged_cell_ranges", None) or ():
        yield (top, left), (right - left + 1, bottom - top + 1)


def _cells(
    row: Sequence[object], place: int, left: int, spans: dict[tuple[int, int], tuple[int, int]], covered: dict[int, int]
) -> list[Cell]:
    """Without those that another one covers; ``covered`` holds the row up to which one above covers a column."""
    cells: list[Cell] = []
    free = left
    for column, value in enumerate(row[:MOST_COLUMNS], left):
        if column >= free and place >= covered.get(column, 0):
            columns, rows = spans.get((place, column), (1, 1))
            cells.append(Cell(_text(value), columns, rows))
            free = column + columns
            if rows > 1:
                covered.update(dict.fromkeys(range(column, free), place + rows))
    return cells


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes").removesuffix(" 00:00")
    if isinstance(value, float):  # in so many digits as spreadsheets show: 0.1 + 0.2 is 0.3
        return str(int(value)) if value.is_integer() and abs(value) < 1e16 else f"{value:.15g}"
    return value.isoformat() if isinstance(value, date) else str(value)
