"""Markdown, parsed as CommonMark with tables. Headings become titles, ``Document > Section``; markup goes, its words stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.html import visible_text
from gnothi.retrieval.ingest.split import collapse
from gnothi.retrieval.ingest.text import blocks as text_blocks
from gnothi.types import Value

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
_FRONT_LINE = re.compile(
    r"^([^\s:#-][^:\n]*?)[ \t]*:[ \t]+(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s\[{|>&*!#][^\n]*?))(?:[ \t]+#.*)?[ \t\r]*$", re.M
)
_LONGEST_FRONT = 1 << 16
_HEADING = re.compile(r"\n(?=#{1,6}\s)")
_FENCE = re.compile(r"^(?:```|~~~)", re.MULTILINE)
_PART = 1 << 18


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    headings, known = _Headings(path.stem), dict[str, Value]()
    for step in document_steps(_blocks(path, headings, known), key, words):
        yield replace(step, passages=tuple(replace(one, metadata=known) for one in step.passages)) if known else step


def _blocks(path: Path, headings: _Headings, known: dict[str, Value]) -> Iterator[Block]:
    """Fills ``known`` with what the front matter says beside the title."""
    parser = MarkdownIt("commonmark").enable("table")
    for text, place, notice in _parts(path):
        if notice:
            yield Block(headings.title, "", notice=notice)
        if place == 0 and (front := _FRONT_MATTER.match(text)):
            known |= front_matter(front[1])
            headings.document = str(known.pop("title", ""))
            text = text[front.end() :]
        tokens = parser.parse(text)
        for i, token in enumerate(tokens):
            if token.type == "inline" and tokens[i - 1].type == "heading_open":
                headings.enter(int(tokens[i - 1].tag[1]), collapse(_inline(token)))
            elif words := _words(token):
                yield Block(headings.title, words + "\n\n", place)


def front_matter(text: str) -> dict[str, Value]:
    """Its flat lines ``key: value`` (YAML); lists and what is below a key are left out. What JSON writes the same is a number,
    true or false, unless it is quoted."""
    found: dict[str, Value] = {}
    for key, double, single, plain in _FRONT_LINE.findall(text[:_LONGEST_FRONT]):
        found[key] = double or single or _plain(plain)
    return found


def _plain(text: str) -> Value:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) and json.dumps(value) == text else text


class _Headings:
    """The title at a place: the document's (front matter, else its first top-level heading, else the file's name) and the
    section's."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.document = ""
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, text: str) -> None:
        if level == 1 and not self.document:
            self.document = text
        self._path = [(above, title) for above, title in self._path if above < level]
        if text and text != self.document:
            self._path.append((level, text))

    @property
    def title(self) -> str:
        return " > ".join([self.document or self.name, *(title for _, title in self._path)])


def _words(token: Token) -> str:
    if token.type == "inline":
        return _inline(token)
    if token.type in ("fence", "code_block"):
        return token.content
    return visible_text(token.content) if token.type == "html_block" else ""


def _inline(token: Token) -> str:
    out = []
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            out.append("\n")
        elif child.type != "html_inline":
            out.append(child.content)
    return "".join(out)


def _parts(path: Path) -> Iterator[tuple[str, int, str]]:
    """(text, bytes read before it, notice): the whole file when it is small, else about 256 KiB at a time, cut before a heading
    outside of fenced code where there is one, else where plain text is cut."""
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
            held, before = held[cut:], read
    yield held, before, ""


def _last_heading(text: str) -> int:
    for match in reversed(list(_HEADING.finditer(text))):
        if len(_FENCE.findall(text, 0, match.start())) % 2 == 0:
            return match.end()
    return len(text)
