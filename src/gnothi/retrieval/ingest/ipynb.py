"""Jupyter notebooks: cells of Markdown and of code, and what code printed; pictures are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gnothi.errors import MALFORMED
from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, Unreadable, document_steps
from gnothi.retrieval.ingest.encoding import check_text
from gnothi.retrieval.ingest.markdown import markdown_blocks
from gnothi.retrieval.ingest.outline import Outline

_MOST = 100 << 20  # bytes; mostly pictures
_LONGEST_OUTPUT = 10_000  # characters


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(blocks(path), key, words)


def blocks(path: Path) -> Iterator[Block]:
    check_text(path)
    if (size := path.stat().st_size) > _MOST:
        raise Unreadable(f"{path} is larger than {_MOST >> 20} MB. Save it without outputs.")
    try:
        cells = _cells(json.loads(path.read_bytes()))
    except MALFORMED as error:
        raise Unreadable(f"{path} is not a notebook that can be read: {error}. Save it again.") from None
    outline = Outline(path.stem)
    for number, cell in enumerate(cells, 1):
        text, read = _text(cell.get("source", cell.get("input"))), size * number // len(cells)
        if cell.get("cell_type") == "code":
            yield outline.code(text + "\n", read)
            for output in cell.get("outputs") or ():
                yield outline.code(_output(output), read)
        else:
            yield from markdown_blocks(text, outline, read)


def _cells(notebook: Any) -> list[dict[str, Any]]:
    """Of version 4, or of 3, where they stand in worksheets. Raises one of MALFORMED."""
    if not isinstance(notebook, dict) or not ("cells" in notebook or "worksheets" in notebook):
        raise ValueError("it holds no cells")
    cells = notebook.get("cells") or [cell for sheet in notebook.get("worksheets", ()) for cell in sheet["cells"]]
    if not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("a cell is not an object")
    return list(cells)


def _output(output: Any) -> str:
    text = output.get("text") or (output.get("data") or {}).get("text/plain") if isinstance(output, dict) else ""
    return _text(text)[:_LONGEST_OUTPUT] + "\n"


def _text(source: Any) -> str:
    parts = source if isinstance(source, list) else [source]
    return "".join(part for part in parts if isinstance(part, str))
