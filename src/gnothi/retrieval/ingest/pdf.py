"""PDF, by pypdf (``pip install 'gnothi[documents]'``). The title is the document's own, else the file's name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from gnothi.errors import MissingDependency
from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, Unreadable, document_steps
from gnothi.retrieval.ingest.split import collapse

_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[a-z])")


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(_blocks(path), key, words)


def _blocks(path: Path) -> Iterator[Block]:
    """One block a page; a page that cannot be read is a notice. Raises Unreadable for what is no PDF, or is encrypted."""
    try:
        from pypdf import PdfReader
    except ImportError:
        raise MissingDependency("pypdf", "documents", f"reading {path}") from None
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns about every oddity of every file
    try:
        with path.open("rb") as file:
            reader = PdfReader(file)
            if reader.is_encrypted and not reader.decrypt(""):
                raise Unreadable(f"{path} is protected by a password. Save it without one.")
            size = path.stat().st_size
            title = _title(reader.metadata) or path.stem
            pages = len(reader.pages)
            for number in range(pages):
                yield _page(reader, number, title, size * (number + 1) // pages)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror or error}. Check its permissions.") from None
    except (Unreadable, GeneratorExit):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file makes pypdf raise anything
        raise Unreadable(f"{path} is not a PDF that can be read: {error}. Repair it, or convert it to text.") from None


def _page(reader: object, number: int, title: str, read: int) -> Block:
    try:
        text = reader.pages[number].extract_text()  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - as above, and the other pages may be fine
        return Block(title, "", read, notice=f"page {number + 1} could not be read: {error}")
    return Block(title, _HYPHEN.sub("", text) + "\n", read)


def _title(metadata: object) -> str:
    title = getattr(metadata, "title", None)
    return collapse(title) if isinstance(title, str) else ""
