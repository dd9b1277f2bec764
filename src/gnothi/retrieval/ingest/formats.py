"""The formats that an index can be built from: the end of a file's name, and the function that reads such a file.

``read(path, key, words, start)`` gives steps. ``key`` is the source's stable name: passages without an id of their own are
called ``key#number``, so reading the same file again gives the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import ModuleType

from gnothi.errors import MissingDependency
from gnothi.retrieval.ingest import (
    bounded,
    delimited,
    eml,
    epub,
    html,
    json_file,
    markdown,
    odf,
    office,
    org,
    pdf,
    rst,
    text,
    xlsx,
)
from gnothi.retrieval.ingest.base import Block, Checkpoint, NoDocument, Step, document_steps
from gnothi.retrieval.ingest.corpora import AS_FOUND, Keys

Reader = Callable[[Path, str, int, Checkpoint], Iterator[Step]]
Blocks = Callable[[Path], Iterator[Block]]


def _document(blocks: Blocks) -> Reader:
    """Of a format that is read from its beginning each time."""

    def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001
        yield from document_steps(blocks(path), key, words)

    return read


def _apart(module: ModuleType, package: str, name: str) -> Blocks:
    """The blocks of a module that reads by another package, called ``name`` where packages are installed, in a process of its
    own."""

    def blocks(path: Path) -> Iterator[Block]:
        if find_spec(package) is None:
            raise MissingDependency(name, "documents", f"reading {path}")
        yield from bounded.blocks(module.__name__, path)

    return blocks


_RECORDS: dict[str, Reader] = {
    ".jsonl .ndjson": json_file.read_lines,
    ".json": json_file.read,
    ".parquet": delimited.read_parquet,
    ".tsv .csv": delimited.read,
}
_DOCUMENTS: dict[str, Blocks] = {
    ".txt": text.blocks,
    ".md .markdown": markdown.blocks,
    ".html .htm .xhtml": html.blocks,
    ".pdf": _apart(pdf, "pypdfium2", "pypdfium2"),
    ".docx .docm": office.docx_blocks,
    ".pptx .pptm .ppsx": office.pptx_blocks,
    ".xlsx .xlsm": _apart(xlsx, "python_calamine", "python-calamine"),
    ".odt .odp .ods": odf.blocks,
    ".epub": epub.blocks,
    ".eml .mbox": eml.blocks,
    ".ipynb": markdown.notebook_blocks,
    ".rst": _apart(rst, "docutils", "docutils"),
    ".org": org.blocks,
    text.SOURCES: text.source_blocks,
}
FORMATS: dict[str, Reader] = {
    end: read
    for ends, read in [
        *_RECORDS.items(),
        *((ends, _document(blocks)) for ends, blocks in _DOCUMENTS.items()),
        (".jsonl.gz .ndjson.gz", json_file.read_lines),
        (".tsv.gz .csv.gz", delimited.read),
    ]
    for end in ends.split()
}
"""The most usual ones first: messages name these alone."""


def reader(path: Path, keys: Keys = AS_FOUND) -> Reader:
    """What reads a file of a known format; ``keys`` are those of records. Raises NoDocument for judgements beside a corpus."""
    name = path.name.lower()
    if path.parent.name.lower() == "qrels" or name.startswith("qrels"):
        raise NoDocument(f"{path} holds judgements of relevance, no documents.")
    read = next(read for end, read in FORMATS.items() if name.endswith(end))
    takes_keys: Callable[..., Iterator[Step]] = read
    return partial(takes_keys, keys=keys) if keys != AS_FOUND and "keys" in signature(read).parameters else read
