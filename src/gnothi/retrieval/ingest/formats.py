"""The formats that an index can be built from: the end of a file's name, and the function that reads such a file.

``read(path, key, words, start)`` gives steps. ``key`` is the source's stable name: passages without an id of their own are
called ``key#number``, so reading the same file again gives the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from gnothi.retrieval.ingest import html, jsonl, markdown, pdf, text, tsv
from gnothi.retrieval.ingest.base import Checkpoint, Step

Reader = Callable[[Path, str, int, Checkpoint], Iterator[Step]]

FORMATS: dict[str, Reader] = {
    ".jsonl": jsonl.read,
    ".ndjson": jsonl.read,
    ".tsv": tsv.read,
    ".txt": text.read,
    ".md": markdown.read,
    ".markdown": markdown.read,
    ".html": html.read,
    ".htm": html.read,
    ".xhtml": html.read,
    ".pdf": pdf.read,
    ".jsonl.gz": jsonl.read,
    ".ndjson.gz": jsonl.read,
    ".tsv.gz": tsv.read,
}


def reader(path: Path) -> Reader:
    """What reads a file of a known format."""
    name = path.name.lower()
    return next(read for end, read in FORMATS.items() if name.endswith(end))
