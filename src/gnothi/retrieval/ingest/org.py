"""Org mode: headings, paragraphs, tables and blocks of code; drawers, settings and comments are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from gnothi.retrieval.ingest import text
from gnothi.retrieval.ingest.base import Block, day
from gnothi.retrieval.ingest.outline import Outline, raised
from gnothi.retrieval.ingest.tables import Cell, Table

_HEADING = re.compile(r"(\*+)\s+(?:(?:TODO|DONE)\s+)?(?:\[#\w\]\s*)?(.*?)(?:\s+:[\w@#%:]+:)?\s*")
_SETTING = re.compile(r"\s*#\+(\w+):\s*(.*)", re.IGNORECASE)
_CODE = re.compile(r"\s*#\+begin_(?:src|example)\b", re.IGNORECASE)
_END = re.compile(r"\s*#\+end_(?:src|example)\b", re.IGNORECASE)
_LEFT_OUT = re.compile(r"\s*(?:#\s|#$|#\+|(?:CLOSED|DEADLINE|SCHEDULED):)")
_DRAWER = re.compile(r"\s*:(?:PROPERTIES|LOGBOOK):\s*", re.IGNORECASE)
_LINK = re.compile(r"\[\[([^\]\[]+)\](?:\[([^\]\[]+)\])?\]")
_RAISED = re.compile(r"(?<=(.))\^\{?([+-]?\w+)\}?")
_LOWERED = re.compile(r"(?<=\w)_\{(\w+)\}")

Line = tuple[str, int, str]


def blocks(path: Path) -> Iterator[Block]:
    outline = Outline(path.stem)
    lines = _Lines(_read(path, outline))
    caption = ""
    for line, read, notice in lines:
        if notice:
            yield outline.notice(notice)
        elif match := _HEADING.fullmatch(line):
            yield from outline.enter(len(match[1]), _words(match[2]))
        elif setting := _SETTING.fullmatch(line):
            caption = _setting(setting[1].lower(), setting[2].strip(), outline) or caption
        elif _CODE.match(line):
            code = takewhile(lambda item: not _END.match(item[0]), lines)
            yield outline.code("".join(f"{line}\n" for line, _, _ in code), read)
        elif _DRAWER.fullmatch(line):
            for inner, _, _ in lines:
                if inner.strip().lower() == ":end:":
                    break
        elif line.lstrip().startswith("|"):
            rows = _table(line, lines)
            heads = 1 if len(rows) > 1 and rows[1] is None else None
            yield from outline.table(filter(None, rows), Table(heads, caption), read)
            caption = ""
        elif not _LEFT_OUT.match(line):
            yield outline.block(_words(line) + "\n", read)


class _Lines:
    """Each line, with the bytes read so far, or a notice; one may be put back."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.back: list[Line] = []

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        return self.back.pop() if self.back else next(self._lines)


def _read(path: Path, outline: Outline) -> Iterator[Line]:
    held = ""
    read = 0
    for block in text.blocks(path, outline.name):
        read = block.read
        if block.notice:
            yield "", read, block.notice
        *whole, held = (held + block.text).split("\n")
        yield from ((line, read, "") for line in whole)
    yield held, read, ""


def _setting(name: str, value: str, outline: Outline) -> str:
    """Keeps the document's metadata; returns a caption."""
    if name == "title":
        outline.document = value
    elif name in ("author", "date") and (text := day(value.strip("<>[]")) if name == "date" else value):
        outline.metadata[name] = text
    return value if name == "caption" else ""


def _table(line: str, lines: _Lines) -> list[list[Cell] | None]:
    """The rows (None for a rule) of a table that begins with this line."""
    rows: list[list[Cell] | None] = []
    while line.lstrip().startswith("|"):
        inner = line.strip().strip("|")
        rows.append(None if inner.startswith("-") else [Cell(_words(cell)) for cell in inner.split("|")])
        after = next(lines, None)
        if after is None:
            return rows
        line = after[0]
        if not line.lstrip().startswith("|"):
            lines.back.append(after)
    return rows


def _words(line: str) -> str:
    line = _LINK.sub(lambda match: match[2] or match[1], line)
    return _LOWERED.sub(r"\1", _RAISED.sub(lambda match: raised(match[1], match[2]), line))
