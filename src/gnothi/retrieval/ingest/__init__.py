"""From files to passages: one module per format, each a generator that holds little however large the file.

A format is a suffix and a function ``read(path, key, words, start)`` giving steps. ``key`` is the source's stable name:
passages without an id of their own are called ``key#number``, so reading the same file again gives the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import Checkpoint, Step

Reader = Callable[[Path, str, int, Checkpoint], Iterator[Step]]


def _jsonl(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    from gnothi.retrieval.ingest.jsonl import read

    return read(path, key, words, start)


def _tsv(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    from gnothi.retrieval.ingest.tsv import read

    return read(path, key, words, start)


def _text(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    from gnothi.retrieval.ingest.text import read

    return read(path, key, words, start)


def _markdown(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    from gnothi.retrieval.ingest.markdown import read

    return read(path, key, words, start)


def _html(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    from gnothi.retrieval.ingest.html import read

    return read(path, key, words, start)


def _pdf(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    from gnothi.retrieval.ingest.pdf import read

    return read(path, key, words, start)


FORMATS: dict[str, Reader] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".tsv": _tsv,
    ".txt": _text,
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
}
