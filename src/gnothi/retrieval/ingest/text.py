"""Plain text. The title is the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.encoding import chunks, detect


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(blocks(path, path.stem), key, words)


def blocks(path: Path, title: str) -> Iterator[Block]:
    """Text in blocks of at most 64 KiB, cut anywhere."""
    encoding = detect(path)
    if encoding.notice:
        yield Block(title, "", notice=encoding.notice)
    for text, read in chunks(path, encoding.name):
        yield Block(title, text, read)
