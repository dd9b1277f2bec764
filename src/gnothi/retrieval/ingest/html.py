"""HTML: the visible words. ``<title>`` names the document, headings its sections; scripts, styles, navigation are dropped.

libxml2 (by lxml) reads it as browsers do, piece by piece and in time that grows with the file, whatever the markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lxml.etree import HTMLParser

from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.encoding import check_text, chunks, detect
from gnothi.retrieval.ingest.split import collapse

_CHARSET = re.compile(rb"(?:<meta[^>]+charset|<\?xml[^>]+encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
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
    words = _Words("")
    parser = _parser(words)
    parser.feed(html.encode("utf-8", "replace"))
    parser.close()
    return "\n".join(collapse(text) for _, text in words.take(last=True))


def _blocks(path: Path) -> Iterator[Block]:
    declared = _CHARSET.search(check_text(path))
    encoding = detect(path, declared[1].decode("ascii") if declared else None)
    words = _Words(path.stem)
    parser = _parser(words)
    if encoding.notice:
        yield Block(words.title, "", notice=encoding.notice)
    read = 0
    for text, read in chunks(path, encoding.name):
        parser.feed(text.encode("utf-8", "replace"))
        for title, block in words.take():
            yield Block(title, block + "\n\n", read)
    parser.close()
    for title, block in words.take(last=True):
        yield Block(title, block + "\n\n", read)


def _parser(words: _Words) -> HTMLParser:
    """Calls ``words`` for each tag and text. It gets UTF-8, whatever the page declares: the decoding is done here."""
    return HTMLParser(target=words, encoding="utf-8", huge_tree=True)


class _Words:
    """Collects (title, text) for each run of text between block elements."""

    def __init__(self, name: str) -> None:
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
        if last:
            self._close_capture()
            self._end_block()
        elif not self._capturing and sum(map(len, self._text)) > _LONGEST_BLOCK:
            text = "".join(self._text)
            place = max(text.rfind(" "), text.rfind("\n")) + 1 or len(text)  # the last word may go on
            self._text = [text[:place]]
            self._end_block()
            self._text = [text[place:]]
        done, self._done = self._done, []
        yield from done

    def start(self, tag: str, attributes: object) -> None:  # noqa: ARG002 - as lxml calls it
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

    def end(self, tag: str) -> None:
        if self._dropping:
            if tag in self._dropping:
                while self._dropping.pop() != tag:
                    pass
            return
        if tag == self._capturing:
            self._close_capture()
        elif tag not in _INLINE and not self._capturing:
            self._end_block()

    def data(self, data: str) -> None:
        if not self._dropping:
            self._text.append(data)

    def close(self) -> None:
        """Nothing is left to do at the end: ``take`` follows."""

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
