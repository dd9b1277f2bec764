"""HTML: the visible words. ``<title>`` names the document, headings its sections; scripts, styles, navigation and hidden text
are dropped; rows of tables and lines of code are kept whole.

libxml2 (by lxml) reads it as browsers do, piece by piece and in time that grows with the file, whatever the markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lxml.etree import HTMLParser

from gnothi.retrieval.ingest.base import Block, day
from gnothi.retrieval.ingest.encoding import check_text, chunks, detect
from gnothi.retrieval.ingest.outline import Outline, raised
from gnothi.retrieval.ingest.split import collapse
from gnothi.retrieval.ingest.tables import MOST_COLUMNS, Cell, Table

_CHARSET = re.compile(rb"(?:<meta[^>]+charset|<\?xml[^>]+encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_DROPPED = frozenset(
    ("script", "style", "noscript", "template", "svg", "math", "nav", "footer", "select", "button", "iframe", "object")
)
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins",
     "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strike",
     "strong", "sub", "sup", "time", "tt", "u", "var", "wbr")
)  # fmt: skip
_METADATA = {
    "author": "author", "article:author": "author", "dc.creator": "author", "citation_author": "author",
    "date": "date", "article:published_time": "date", "dc.date": "date", "dcterms.date": "date", "citation_date": "date",
    "og:url": "url", "canonical": "url",
}  # fmt: skip
_LONGEST_TITLE = 300  # a heading that was never closed must not swallow the page
_LONGEST_BLOCK = 1 << 16
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def visible_text(html: str) -> str:
    """The words of a fragment of HTML, one line for each block element."""
    return "\n".join(collapse(block.text) for block in fragment(html, Outline("")))


def fragment(html: str, outline: Outline) -> Iterator[Block]:
    """The blocks of a part of a document."""
    yield from page_blocks([(html, 0)], outline)


def page_blocks(texts: Iterable[tuple[str, int]], outline: Outline) -> Iterator[Block]:
    """The blocks of a page; ``texts`` are its parts, each with the bytes read so far."""
    page = _Page(outline)
    # It gets UTF-8, whatever the page declares: the decoding is done before.
    parser = HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    for text, page.read in texts:
        parser.feed(text.encode("utf-8", "replace"))
        yield from page.take()
    parser.close()
    yield from page.take(last=True)


def blocks(path: Path) -> Iterator[Block]:
    declared = _CHARSET.search(check_text(path))
    encoding = detect(path, declared[1].decode("ascii") if declared else None)
    outline = Outline(path.stem)
    if encoding.notice:
        yield outline.notice(encoding.notice)
    yield from page_blocks(chunks(path, encoding.name), outline)


@dataclass(slots=True)
class _OpenTable:
    """``table`` is None for one that arranges text; ``row`` None outside of its rows, ``cell`` outside of their cells."""

    table: Table | None = field(default_factory=Table)
    row: list[Cell] | None = None
    cell: Cell | None = None
    in_head: bool = False


class _Page:
    """Gets each tag and text from the parser, and collects blocks."""

    def __init__(self, outline: Outline) -> None:
        self.read = 0
        self._outline = outline
        self._text: list[str] = []
        self._done: list[Block] = []
        self._hidden = 0  # elements that are open below a hidden one, with it
        self._capturing = ""  # title, caption or a heading: its text names what follows
        self._in_code = False
        self._tables: list[_OpenTable] = []
        self._raised: tuple[int, bool] | None = None  # where a superscript began, and whether it leads somewhere

    def take(self, last: bool = False) -> Iterator[Block]:
        if last:
            self._close_capture()
            while self._tables:
                self._end_table()
            self._end_block()
        elif not self._capturing and sum(map(len, self._text)) > _LONGEST_BLOCK:
            self._arranges(always=True)
            text = "".join(self._text)
            place = max(text.rfind(" "), text.rfind("\n")) + 1 or len(text)  # the last word may go on
            self._text = [text[:place]]
            self._end_block("\n\n" if not self._in_code else "")
            self._text, self._raised = [text[place:]], None
        done, self._done = self._done, []
        yield from done

    # What the parser calls.

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        folds = tag == "button" and self._capturing  # a heading that opens and closes its section
        if self._hidden or (tag in _DROPPED and not folds) or _hides(attributes):
            self._hidden += 1
        elif tag in ("meta", "link"):
            self._note(attributes)
        elif tag in _INLINE:
            if tag == "sup":
                self._raised = len(self._text), False
            elif tag == "a" and self._raised:
                self._raised = self._raised[0], True
        elif tag in _HEADINGS or tag in ("title", "caption"):
            self._start_capture(tag)
        elif self._capturing:
            self._text.append(" ")
        elif tag in ("table", "thead", "tr", "td", "th"):
            self._start_table(tag, attributes)
        elif tag == "pre":
            self._arranges()
            self._end_block()
            self._in_code = self._cell is None
        elif self._in_code:
            self._end_line(tag == "br")
        else:
            self._end_block()

    def end(self, tag: str) -> None:
        if self._hidden:
            self._hidden -= 1
        elif tag == self._capturing:
            self._close_capture()
        elif tag == "sup" and self._raised:
            self._end_raised()
        elif tag in _INLINE or self._capturing or tag == "br":
            return
        elif self._tables and tag in ("table", "thead", "tr", "td", "th"):
            self._end_part_of_table(tag)
        elif tag == "pre" or not self._in_code:
            self._end_block()
            self._in_code = False
        else:
            self._end_line(False)

    def data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data)

    def close(self) -> None:
        """Nothing is left to do at the end: ``take`` follows."""

    # Text.

    def _end_block(self, end: str = "\n\n") -> None:
        """What was collected is a block; in a cell it is a line."""
        if self._cell is not None:
            self._text.append("\n")
            return
        text, self._text, self._raised = "".join(self._text), [], None
        if text.strip():
            block = self._outline.code(text, self.read) if self._in_code else self._outline.block(text + end, self.read)
            self._done.append(block)

    def _end_line(self, always: bool) -> None:
        if always or (self._text and not self._text[-1].endswith("\n")):
            self._text.append("\n")

    def _end_raised(self) -> None:
        place, link = self._raised or (0, False)
        inner, before = "".join(self._text[place:]), "".join(self._text[max(0, place - 3) : place])
        self._text[place:], self._raised = [raised(before, inner, link)], None

    # Titles.

    def _start_capture(self, tag: str) -> None:
        self._close_capture()
        if tag in _HEADINGS:
            self._arranges()
            if self._cell is not None:  # of a table that has heads: a heading within is text of the cell
                self._text.append("\n")
                return
        self._end_block()
        self._in_code = False
        self._capturing = tag

    def _close_capture(self) -> None:
        if not self._capturing:
            return
        text, self._text, self._raised = collapse("".join(self._text)), [], None
        tag, self._capturing = self._capturing, ""
        table = self._tables[-1].table if self._tables and tag == "caption" else None
        if len(text) > _LONGEST_TITLE or (tag == "caption" and not table):
            self._done.append(self._outline.block(text + "\n\n", self.read))
        elif table:
            table.caption = text
        elif tag == "title" and not self._outline.document:
            self._outline.document = text
        else:  # the title of a chapter of a book is a heading
            self._done += self._outline.enter(1 if tag == "title" else int(tag[1]), text)

    def _note(self, attributes: Mapping[str, str]) -> None:
        key = attributes.get("name") or attributes.get("property") or attributes.get("rel") or ""
        value = collapse(attributes.get("content") or attributes.get("href") or "")
        name = _METADATA.get(key.lower(), "")
        if value := day(value) if name == "date" else value:
            self._outline.metadata.setdefault(name, value[:_LONGEST_TITLE]) if name else None

    # Tables.

    @property
    def _cell(self) -> Cell | None:
        """The open one of a table that lists."""
        return self._tables[-1].cell if self._tables else None

    def _start_table(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "table":
            self._arranges()
            within = self._cell is not None  # of a table with heads: the words of this one belong to the cell
            self._end_block()
            arranging = within or attributes.get("role") in ("presentation", "none")
            opened = _OpenTable(None if arranging else Table())
            if within:
                opened.cell = self._cell
            self._tables.append(opened)
            return
        if not self._tables or self._tables[-1].table is None:
            self._end_block()
            return
        top = self._tables[-1]
        if tag == "thead":
            top.in_head = True
        elif tag == "tr":
            self._end_row(top)
            top.row = []
        else:
            self._end_cell(top)
            self._end_block()  # text that stands between cells
            head = tag == "th" or top.in_head
            top.cell = Cell("", _number(attributes, "colspan"), _number(attributes, "rowspan"), head)

    def _end_part_of_table(self, tag: str) -> None:
        top = self._tables[-1]
        if tag == "table":
            self._end_table()
        elif top.table is None:
            self._end_block()
        elif tag == "thead":
            top.in_head = False
        elif tag == "tr":
            self._end_row(top)
        else:
            self._end_cell(top)

    def _end_cell(self, top: _OpenTable) -> None:
        if top.cell is None:
            return
        text, self._text, self._raised = "".join(self._text), [], None
        if top.row is None:
            top.row = []
        if len(top.row) < MOST_COLUMNS:
            top.row.append(top.cell._replace(text=text))
        top.cell = None

    def _end_row(self, top: _OpenTable) -> None:
        self._end_cell(top)
        row, top.row = top.row, None
        if row and top.table:
            self._done += self._outline.row_blocks(top.table, top.table.add(row), self.read)

    def _end_table(self) -> None:
        top = self._tables[-1]
        if top.table is None:
            self._end_block()
        else:
            self._end_row(top)
            self._end_block()
            self._done += self._outline.row_blocks(top.table, top.table.end(), self.read)
        self._tables.pop()

    def _arranges(self, always: bool = False) -> None:
        """What begins here (another table, a heading, code) makes the table around it one that arranges text, unless that has
        heads."""
        top = self._tables[-1] if self._tables else None
        if top is None or top.table is None:
            return
        if not always and (top.table.has_heads or any(cell.head for cell in top.row or ())):
            return
        self._done += self._outline.row_blocks(top.table, top.table.arranges(), self.read)
        row, text = top.row or [], self._text
        top.table = top.row = top.cell = None
        for cell in row:
            self._text, self._raised = [cell.text], None
            self._end_block()
        self._text = text


def _hides(attributes: Mapping[str, str]) -> bool:
    return bool(attributes) and (
        attributes.get("hidden", "until-found") != "until-found"
        or attributes.get("aria-hidden") == "true"
        or ("style" in attributes and _HIDDEN_STYLE.search(attributes["style"]) is not None)
    )


def _number(attributes: Mapping[str, str], name: str) -> int:
    value = attributes.get(name, "1").strip()
    return min(int(value), MOST_COLUMNS) if value.isascii() and value.isdigit() and len(value) < 9 else 1
