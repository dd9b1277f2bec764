"""Org mode: headings, paragraphs, tables and blocks of code; drawers, settings and comments are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gnothi.retrieval.ingest import text
from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.dates import day
from gnothi.retrieval.ingest.outline import Outline
from gnothi.retrieval.ingest.superscripts import raised
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


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(_blocks(path), key, words)


def _blocks(path: Path) -> Iterator[Block]:
    outline = Outline(path.stem)
    lines = _lines(path, outline)
    caption = ""
    for line, read, notice in lines:
        if notice:
            yield outline.notice(notice)
        elif found := _HEADING.fullmatch(line):
            yield from outline.enter(len(found[1]), _words(found[2]))
        elif setting := _SETTING.fullmatch(line):
            caption = _setting(setting[1].lower(), setting[2].strip(), outline) or caption
        elif _CODE.match(line):
            code = "".join(f"{inner}\n" for inner, _, _ in iter(lambda: next(lines, ("#+end_src", 0, "")), None) if True) if False else _until_end(lines)
            yield outline.code(code, read)
        elif _DRAWER.fullmatch(line):
            for inner, _, _ in lines:
                if inner.strip().lower() == ":end:":
                    break
        elif line.lstrip().startswith("|"):
            rows, after = _table(line, lines)
            heads = 1 if len(rows) > 1 and rows[1] is None else None
            yield from outline.table(filter(None, rows), Table(heads, caption), read)
            caption = ""
            if after is not None:
                lines = chain([after], lines)
        elif not _LEFT_OUT.match(line):
            yield outline.block(_words(line) + "\n", read)
