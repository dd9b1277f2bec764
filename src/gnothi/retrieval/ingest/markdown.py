"""Markdown, parsed as CommonMark with tables. Headings become titles, ``Document > Section``; markup goes, its words stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gnothi.errors import MALFORMED, malformation
from gnothi.retrieval.ingest.base import Block, Unreadable, day
from gnothi.retrieval.ingest.encoding import check_text
from gnothi.retrieval.ingest.html import fragment, visible_text
from gnothi.retrieval.ingest.outline import Outline
from gnothi.retrieval.ingest.tables import Cell, Table
from gnothi.retrieval.ingest.text import blocks as text_blocks
from gnothi.types import Value

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
_FRONT_LINE = re.compile(
    r"^([^\s:#-][^:\n]*?)[ \t]*:[ \t]+(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s\[{|>&*!#][^\n]*?))(?:[ \t]+#.*)?[ \t\r]*$", re.M
)
_LONGEST_FRONT = 1 << 16
_HEADING = re.compile(r"\n(?=#{1,6}\s)")
_FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)
_UNDER_HEADS = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_CODE_WITH_PIPE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\1).)*?\|.*?)(?<!`)\1(?!`)")
_PART = 1 << 18


def blocks(path: Path) -> Iterator[Block]:
    outline = Outline(path.stem)
    for text, place, notice in _parts(path):
        if notice:
            yield outline.notice(notice)
        if place == 0 and (front := _FRONT_MATTER.match(text)):
            fields = front_matter(front[1])
            outline.document = str(fields.pop("title", ""))
            outline.metadata.update(fields)
            text = text[front.end() :]
        yield from markdown_blocks(text, outline, place)


def front_matter(text: str) -> dict[str, Value]:
    """Its flat lines ``key: value`` (YAML); lists and what is below a key are left out. What JSON writes the same is a number,
    true or false, unless it is quoted; a ``date`` is a day."""
    metadata: dict[str, Value] = {}
    for key, double, single, plain in _FRONT_LINE.findall(text[:_LONGEST_FRONT]):
        if known := double or single or _plain(plain):
            metadata[key] = (day(str(known)) or known) if key == "date" else known
    return metadata


def _plain(text: str) -> Value:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) and json.dumps(value) == text else text


def markdown_blocks(text: str, outline: Outline, read: int = 0) -> Iterator[Block]:
    """The blocks of a piece of Markdown."""
    tokens = iter(_parsed(text))
    before = None
    for token in tokens:
        if token.type == "table_open":
            yield from outline.table(_rows(tokens), Table(heads=1), read)
        elif token.type == "inline" and before and before.type == "heading_open":
            yield from outline.enter(int(before.tag[1]), _inline(token))
        elif token.type == "inline":
            yield outline.block(_inline(token) + "\n\n", read)
        elif token.type in ("fence", "code_block"):
            yield outline.code(token.content, read)
        elif token.type == "html_block":
            yield from fragment(token.content, outline)
        before = token


def _parsed(text: str) -> Sequence[Token]:
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    lines = text.split("\n")
    inside = {i for token in tokens if token.type == "table_open" and token.map for i in range(*token.map)}
    if not any(_CODE_WITH_PIPE.search(lines[i]) for i in inside):
        return tokens
    # The standard cuts cells at the pipes of code, too, and drops what is then too many; nobody means that.
    for i in inside:
        lines[i] = _CODE_WITH_PIPE.sub(lambda match: re.sub(r"(?<!\\)\|", r"\\|", match[0]), lines[i])
    return parser.parse("\n".join(lines))


def _rows(tokens: Iterator[Token]) -> Iterator[list[Cell]]:
    row: list[Cell] = []
    for token in tokens:
        if token.type == "inline":
            row.append(Cell(_inline(token)))
        elif token.type == "tr_close":
            yield row
            row = []
        elif token.type == "table_close":
            return


def _inline(token: Token) -> str:
    children = token.children or []
    if any(child.type == "html_inline" for child in children):
        return visible_text("".join(_as_html(child) for child in children))
    return "".join("\n" if child.type in ("softbreak", "hardbreak") else child.content for child in children)


def _as_html(child: Token) -> str:
    if child.type == "html_inline":
        return child.content
    return "\n" if child.type == "softbreak" else "<br>" if child.type == "hardbreak" else escape(child.content)


def _parts(path: Path) -> Iterator[tuple[str, int, str]]:
    """(text, bytes read before it, notice): the whole file when it is small, else about 256 KiB at a time, cut before a heading
    outside of fenced code where there is one, else at the end of a line; a table that is cut gets its heads again."""
    held = ""
    before = read = 0
    for block in text_blocks(path, ""):
        if block.notice:
            yield "", 1, block.notice
        held += block.text
        read = block.read
        if len(held) >= _PART:
            cut = _last_heading(held)
            yield held[:cut], before, ""
            held, before = _heads_of_last_table(held[:cut]) + held[cut:], read
    yield held, before, ""


def _last_heading(text: str) -> int:
    for match in reversed(list(_HEADING.finditer(text))):
        if len(_FENCE.findall(text, 0, match.start())) % 2 == 0:
            return match.end()
    return text.rfind("\n") + 1 or len(text)


def _heads_of_last_table(text: str) -> str:
    """The first two lines of a table that the text ends within."""
    lines = text[text.rfind("\n\n") + 1 :].strip("\n").split("\n")
    heads = [i for i in range(1, len(lines)) if "|" in lines[i] and _UNDER_HEADS.fullmatch(lines[i])]
    if not text.endswith("\n") or not heads or not all("|" in line for line in lines[heads[-1] - 1 :]):
        return ""
    return "\n".join(lines[heads[-1] - 1 : heads[-1] + 1]) + "\n"


# Jupyter notebooks: cells of Markdown and of code, and what code printed; pictures are left out.

_MOST = 100 << 20  # bytes; mostly pictures
_LONGEST_OUTPUT = 10_000  # characters


def notebook_blocks(path: Path) -> Iterator[Block]:
    check_text(path)
    if (size := path.stat().st_size) > _MOST:
        raise Unreadable(f"{path} is larger than {_MOST >> 20} MB. Save it without outputs.")
    try:
        cells = _cells(json.loads(path.read_bytes()))
    except MALFORMED as error:
        raise Unreadable(f"{path} is not a notebook that can be read: {malformation(error)}. Save it again.") from None
    outline = Outline(path.stem)
    for number, cell in enumerate(cells, 1):
        text, read_notebook = _text(cell.get("source", cell.get("input"))), size * number // len(cells)
        if cell.get("cell_type") == "code":
            yield outline.code(text + "\n", read_notebook)
            for output in cell.get("outputs") or ():
                yield outline.code(_output(output), read_notebook)
        else:
            yield from markdown_blocks(text, outline, read_notebook)


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
