"""reStructuredText, by docutils (``pip install 'gnothi[documents]'``) in a process of its own: neither includes files nor raw
text of other formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gnothi.retrieval.ingest.base import Block
from gnothi.retrieval.ingest.encoding import chunks, detect
from gnothi.retrieval.ingest.outline import Outline, raised
from gnothi.retrieval.ingest.tables import Cell, Table

_SETTINGS = {
    "file_insertion_enabled": False, "raw_enabled": False, "report_level": 5, "halt_level": 5, "_disable_config": True,
    "doctitle_xform": False, "smart_quotes": False, "syntax_highlight": "none", "warning_stream": "",
}  # fmt: skip
_LEFT_OUT = (
    "comment",
    "system_message",
    "raw",
    "substitution_definition",
    "target",
    "docinfo",
    "pending",
    "problematic_message",
)


def blocks(path: Path) -> Iterator[Block]:
    """Run by ``bounded`` alone: docutils takes long over some text."""
    from docutils.core import publish_doctree

    encoding = detect(path)
    outline = Outline(path.stem)
    if encoding.notice:
        yield outline.notice(encoding.notice)
    text = "".join(part for part, _ in chunks(path, encoding.name))
    yield from _blocks(publish_doctree(text, settings_overrides=dict(_SETTINGS)), outline, 0)


def _blocks(node: Any, outline: Outline, level: int) -> Iterator[Block]:
    for child in node.children:
        name = type(child).__name__
        if name in _LEFT_OUT:
            continue
        if name == "section":
            yield from _blocks(child, outline, level + 1)
        elif name == "title":
            yield from outline.enter(level, _text(child)) if level else [outline.block(_text(child) + "\n\n")]
        elif name in ("literal_block", "doctest_block", "line_block"):
            yield outline.code(child.astext())
        elif name == "table":
            yield from _table(child, outline)
        elif name in ("paragraph", "rubric", "term", "attribution", "field_name", "subtitle", "caption"):
            yield outline.block(_text(child) + "\n\n")
        elif name == "Text":
            yield outline.block(child.astext() + "\n\n")
        else:
            yield from _blocks(child, outline, level)


def _table(table: Any, outline: Outline) -> Iterator[Block]:
    caption = next((_text(one) for one in table.children if type(one).__name__ == "title"), "")
    parts = [(one, type(one).__name__ == "thead") for group in table.children for one in group.children]
    rows = [(row, head) for part, head in parts if type(part).__name__ in ("thead", "tbody") for row in part.children]
    heads = sum(head for _, head in rows) or None
    cells = (
        [Cell(_text(cell), cell.get("morecols", 0) + 1, cell.get("morerows", 0) + 1) for cell in row.children]
        for row, _ in rows
    )
    yield from outline.table(cells, Table(heads, caption))


def _text(node: Any) -> str:
    out: list[str] = []
    for child in node.children:
        name = type(child).__name__
        if name == "Text":
            out.append(child.astext())
        elif name == "superscript":
            out.append(raised("".join(out[-3:]), _text(child)))
        elif name not in _LEFT_OUT:
            out.append(_text(child) + ("\n" if name == "paragraph" else ""))
    return "".join(out)
