"""What every reader of a format gives: steps, each with passages, where to go on after it, and what was wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from gnothi.errors import InvalidInput
from gnothi.retrieval.ingest.split import count_words, split
from gnothi.types import Passage


class Unreadable(InvalidInput):
    """A file that is not what its name says, or cannot be read. In a folder it is skipped and reported; named by the user it is
    an error."""


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


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document: text under a title. Consecutive blocks with equal titles make up one section."""

    title: str
    text: str
    read: int = 0
    notice: str = ""


def document_steps(blocks: Iterable[Block], key: str, words: int) -> Iterator[Step]:
    """Passages of a document, numbered from 1 over all its sections: ``key#1``, ``key#2`` ..."""
    read = 0
    notices: list[str] = []
    number = 0

    def texts(section: Iterable[Block]) -> Iterator[str]:
        nonlocal read
        for block in section:
            read = block.read
            if block.notice:
                notices.append(block.notice)
            yield block.text

    for title, section in groupby(blocks, key=lambda block: block.title):
        for text in split(texts(section), words):
            number += 1
            yield Step((Passage(f"{key}#{number}", text, title),), read=read)
        while notices:
            yield Step(notice=notices.pop(0), read=read)
    if number == 0:
        yield Step(notice="holds no text", empty=True, read=read)


def record_step(passage: Passage, words: int, checkpoint: Checkpoint) -> Step:
    """A record of a collection. One of up to twice ``words`` is a passage with its own id; a longer one becomes ``id#1``,
    ``id#2`` and so on.

    Collections are mostly cut already, and relevance judgements refer to their ids: only a clearly long document is cut.
    """
    if not passage.text.strip() and not passage.title.strip():
        return Step(checkpoint=checkpoint, empty=True, read=checkpoint.offset)
    if words == 0 or count_words(passage.text) <= 2 * words:
        return Step((passage,), checkpoint, read=checkpoint.offset)
    parts = tuple(
        replace(passage, id=f"{passage.id}#{number}", text=text) for number, text in enumerate(split([passage.text], words), 1)
    )
    return Step(parts, checkpoint, read=checkpoint.offset)
