"""What every reader of a format gives: steps, each with passages, where to go on after it, and what was wrong."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Literal

from gnothi.errors import InvalidInput
from gnothi.retrieval.ingest.split import Code, fits, split
from gnothi.types import Passage, Value


class Unreadable(InvalidInput):
    """A file that is not what its name says, or cannot be read. In a folder it is skipped and reported; named by the user it is
    an error."""


class NoDocument(Unreadable):
    """A file that holds something else than documents, as questions or settings. In a folder it is skipped and named, which is
    no failure."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where to go on in a file of lines: byte offset and number of lines before it."""

    offset: int = 0
    line: int = 0


START = Checkpoint()


@dataclass(frozen=True, slots=True)
class Step:
    """``checkpoint`` None: the file can only be read from its beginning. ``invalid`` says what is wrong with the record (its
    line is ``checkpoint.line``), ``notice`` what the user should know about the file; ``empty`` a record without any text.
    ``read`` is the number of bytes read so far."""

    passages: tuple[Passage, ...] = ()
    checkpoint: Checkpoint | None = None
    invalid: str = ""
    notice: str = ""
    empty: bool = False
    read: int = 0


Kind = Literal["text", "code", "row"]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document: text under a title. Consecutive blocks with equal titles make up one section. A passage has the
    ``metadata`` of the block that its first word stands in; where they differ in more than ``PLACES`` a section ends.

    ``kind``: sentences; code, whose lines are kept; or a row of a table, which is a passage by itself.
    """

    title: str
    text: str
    read: int = 0
    notice: str = ""
    metadata: Mapping[str, Value] = field(default_factory=dict)
    kind: Kind = "text"


PLACES = ("page", "page_label", "line")
"""Metadata over whose ends a text goes on."""


def document_steps(blocks: Iterable[Block], key: str, words: int) -> Iterator[Step]:
    """Passages of a document, numbered from 1 over all its sections: ``key#1``, ``key#2`` ... With ``words`` 0 a section is one
    passage, rows included."""
    read = 0
    notices: list[str] = []
    number = 0

    def with_notices() -> Iterator[Block]:
        nonlocal read
        for block in blocks:
            read = block.read
            if block.notice:
                notices.append(block.notice)
            if block.text:
                yield block

    for (title, row, _), section in groupby(with_notices(), key=lambda block: _section(block, words)):
        begun = _Begun()
        for text in _row_texts(begun.texts(section), words) if row else split(begun.texts(section), words):
            number += 1
            yield Step((Passage(f"{key}#{number}", text, title, begun.metadata(text)),), read=read)
        while notices:
            yield Step(notice=notices.pop(0), read=read)
    while notices:
        yield Step(notice=notices.pop(0), read=read)
    if number == 0:
        yield Step(notice="holds no text", empty=True, read=read)


def _section(block: Block, words: int) -> tuple[str, bool, Mapping[str, object]]:
    metadata = {name: value for name, value in block.metadata.items() if name not in PLACES}
    return block.title, block.kind == "row" and words > 0, metadata


def _row_texts(rows: Iterable[str], words: int) -> Iterator[str]:
    """As for ``record_step``: only a clearly long row is cut."""
    for row in rows:
        yield from split([str(row)], 0 if fits(row, 2 * words) else words)


class _Begun:
    """Which block the first word of each passage stands in, and on which page the last one: passages hold the letters of their
    blocks, in order."""

    def __init__(self) -> None:
        self._begun: deque[tuple[int, Block]] = deque()  # with the number of letters before it
        self._letters = 0
        self._passed = 0

    def texts(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            if not self._begun or self._begun[-1][1].metadata != block.metadata:
                self._begun.append((self._letters, block))
            self._letters += _letters(block.text)
            yield block.text if block.kind == "text" else Code(block.text)

    def metadata(self, text: str) -> Mapping[str, Value]:
        """Of the next passage."""
        while len(self._begun) > 1 and self._begun[1][0] <= self._passed:
            self._begun.popleft()
        self._passed += _letters(text)
        first = self._begun[0][1].metadata
        *_, last = (block.metadata for before, block in self._begun if before < self._passed)
        if last.get("page") in (None, first.get("page")):
            return first
        return {**first, "last_page": last["page"]}


def _letters(text: str) -> int:
    return sum(map(len, text.split()))


def record_step(passage: Passage, words: int, checkpoint: Checkpoint) -> Step:
    """A record of a collection. One of up to twice ``words`` is a passage with its own id; a longer one becomes ``id#1``,
    ``id#2`` and so on.

    Collections are mostly cut already, and relevance judgements refer to their ids: only a clearly long document is cut.
    """
    if not passage.text.strip() and not passage.title.strip():
        return Step(checkpoint=checkpoint, empty=True, read=checkpoint.offset)
    if words == 0 or fits(passage.text, 2 * words):
        return Step((passage,), checkpoint, read=checkpoint.offset)
    parts = tuple(
        replace(passage, id=f"{passage.id}#{number}", text=text) for number, text in enumerate(split([passage.text], words), 1)
    )
    return Step(parts, checkpoint, read=checkpoint.offset)


# Dates of documents, as ISO 8601 has them.

_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)")


def day(text: str | datetime | None) -> str:
    """The day (``2025-01-31``) of a date that begins as ISO 8601 has it, by UTC where it is a time; empty for others."""
    if isinstance(text, datetime):
        return (text.astimezone(UTC) if text.tzinfo else text).date().isoformat()
    match = _DAY.match(text.strip()) if text else None
    try:
        return date(*map(int, match.groups())).isoformat() if match else ""
    except ValueError:
        return ""
