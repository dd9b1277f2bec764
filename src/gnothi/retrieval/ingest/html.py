"""HTML: the visible words. ``<title>`` names the document, headings its sections; scripts, styles, navigation are dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.encoding import check_text, chunks, detect
from gnothi.retrieval.ingest.split import collapse

_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_DROPPED = frozenset(
    ("script", "style", "noscript", "template", "svg", "math", "nav", "footer", "select", "button", "iframe", "object")
)
_INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
     "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strike",
     "strong", "sub", "sup", "time", "tt", "u", "var", "wbr")
)  # fmt: skip
_LONGEST_TITLE = 300  # a heading that was never closed must not swallow the page
_LONGEST_BLOCK = 1 << 16
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(_blocks(path), key, words)


def visible_text(html: str) -> str:
    """The words of a fragment of HTML, one line for each block element."""
    parser = _Parser("")
    parser.feed(html)
    parser.close()
    return "\n".join(collapse(text) for _, text in parser.take(last=True))


def _blocks(path: Path) -> Iterator[Block]:
    declared = _CHARSET.search(check_text(path))
    encoding = detect(path, declared[1].decode("ascii") if declared else None)
    parser = _Parser(path.stem)
    if encoding.notice:
        yield Block(parser.title, "", notice=encoding.notice)
    read = 0
    for text, read in chunks(path, encoding.name):
        parser.feed(text)
        for title, block in parser.take():
            yield Block(title, block + "\n\n", read)
    parser.close()
    for title, block in parser.take(last=True):
        yield Block(title, block + "\n\n", read)


class _Parser(HTMLParser):
    """Collects (title, text) for each run of text between block elements."""

    def __init__(self, name: str) -> None:
        super().__init__(convert_charrefs=True)
        self._name = name
        self._document = ""
        self._section = ""
        self._text: list[str] = []
        self._done: list[tuple[str, str]] = []
        self._dropping: list[str] = []
        self._capturing = ""  # title or a heading: its text names what follows

    @property
    def title(self) -> str:
        document = self._document or self._name
        return f"{document} > {self._section}" if self._section and self._section != document else document

    def take(self, last: bool = False) -> Iterator[tuple[str, str]]:
        if last or (not self._capturing and sum(map(len, self._text)) > _LONGEST_BLOCK):
            self._close_capture()
            self._end_block()
        done, self._done = self._done, []
        yield from done

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if self._dropping or tag in _DROPPED:
            if tag in _DROPPED:
                self._dropping.append(tag)
            return
        if tag in _INLINE or tag == "img":
            return
        if tag in _HEADINGS or tag == "title":
            self._close_capture()
            self._end_block()
            self._capturing = tag
        elif self._capturing:
            self._text.append(" ")
        else:
            self._end_block()

    def handle_endtag(self, tag: str) -> None:
        if self._dropping:
            if tag in self._dropping:
                while self._dropping.pop() != tag:
                    pass
            return
        if tag == self._capturing:
            self._close_capture()
        elif tag not in _INLINE and not self._capturing:
            self._end_block()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attrs)

    def parse_html_declaration(self, i: int) -> int:
        """The base class may fail on ``<![`` that opens nothing known; browsers take it for a comment."""
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def handle_data(self, data: str) -> None:
        if not self._dropping:
            self._text.append(data)

    def _close_capture(self) -> None:
        if not self._capturing:
            return
        text = collapse("".join(self._text))
        self._text = []
        tag, self._capturing = self._capturing, ""
        if len(text) > _LONGEST_TITLE or (tag == "title" and self._document):
            self._done.append((self.title, text))
        elif tag == "title" or (tag == "h1" and not self._document):
            self._document = text
        else:
            self._section = text

    def _end_block(self) -> None:
        text = "".join(self._text)
        self._text = []
        if text.strip():
            self._done.append((self.title, text))
