"""Plain text. The title is the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.encoding import chunks, detect

_BLOCK = 1 << 16


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(blocks(path, path.stem), key, words)


def blocks(path: Path, title: str) -> Iterator[Block]:
    """Text in blocks of about 64 KiB that end at a blank line, a line end or a space, whichever is there."""
    encoding = detect(path)
    if encoding.notice:
        yield Block(title, "", notice=encoding.notice)
    held = ""
    read = 0
    for text, read in chunks(path, encoding.name):
        held += text
        while len(held) > _BLOCK:
            cut = _cut(held)
            yield Block(title, held[:cut], read)
            held = held[cut:]
    yield Block(title, held, read)


def _cut(text: str) -> int:
    for end in ("\n\n", "\n", ". ", " "):
        place = text.rfind(end, _BLOCK // 2, _BLOCK)
        if place >= 0:
            return place + len(end)
    return _BLOCK
