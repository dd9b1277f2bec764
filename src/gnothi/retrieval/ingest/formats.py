"""The formats that an index can be built from: the end of a file's name, and the function that reads such a file.

``read(path, key, words, start)`` gives steps. ``key`` is the source's stable name: passages without an id of their own are
called ``key#number``, so reading the same file again gives the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path

from gnothi.retrieval.ingest import (
    delimited,
    docx,
    eml,
    epub,
    html,
    ipynb,
    json_file,
    jsonl,
    markdown,
    odf,
    org,
    parquet,
    pdf,
    pptx,
    rst,
    source,
    spreadsheet,
    text,
)
from gnothi.retrieval.ingest.base import Checkpoint, NoDocument, Step
from gnothi.retrieval.ingest.corpora import AS_FOUND, Keys

Reader = Callable[[Path, str, int, Checkpoint], Iterator[Step]]

FORMATS: dict[str, Reader] = {
    ".jsonl": jsonl.read,
    ".ndjson": jsonl.read,
    ".json": json_file.read,
    ".parquet": parquet.read,
    ".tsv": delimited.read,
    ".csv": delimited.read,
    ".txt": text.read,
    ".md": markdown.read,
    ".markdown": markdown.read,
    ".html": html.read,
    ".htm": html.read,
    ".xhtml": html.read,
    ".pdf": pdf.read,
    ".jsonl.gz": jsonl.read,
    ".ndjson.gz": jsonl.read,
    ".tsv.gz": delimited.read,
    ".csv.gz": delimited.read,
    ".docx": docx.read,
    ".docm": docx.read,
    ".pptx": pptx.read,
    ".pptm": pptx.read,
    ".ppsx": pptx.read,
    ".xlsx": spreadsheet.read,
    ".xlsm": spreadsheet.read,
    ".odt": odf.read,
    ".odp": odf.read,
    ".ods": odf.read,
    ".epub": epub.read,
    ".eml": eml.read,
    ".mbox": eml.read,
    ".ipynb": ipynb.read,
    ".rst": rst.read,
    ".org": org.read,
    **dict.fromkeys(source.ENDS, source.read),
}


def reader(path: Path, keys: Keys = AS_FOUND) -> Reader:
    """What reads a file of a known format; ``keys`` are those of records. Raises NoDocument for judgements beside a corpus."""
    name = path.name.lower()
    if path.parent.name.lower() == "qrels" or name.startswith("qrels"):
        raise NoDocument(f"{path} holds judgements of relevance, no documents.")
    read = next(read for end, read in FORMATS.items() if name.endswith(end))
    takes_keys: Callable[..., Iterator[Step]] = read
    return partial(takes_keys, keys=keys) if keys != AS_FOUND and "keys" in signature(read).parameters else read
