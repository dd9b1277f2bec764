"""Passages as sentences and back: what a filter of sentences reads, and what it leaves for the reader.

A table row or a list item is a sentence of its own; lines of running text are joined before they are split, so that a sentence
may span them. Where sentences end is the business of ``sentencex``, which knows the abbreviations of many languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gnothi.retrieval.ingest.split import collapse, sentences
from gnothi.types import Passage

LANGUAGE = "en"

_ITEM = re.compile(r"\s*(?:[-*+•‣▪–—]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with the passage it stands in and its place there, from 0. ``gap`` is the white space before it."""

    source: Passage
    number: int
    text: str
    gap: str = " "

    @property
    def passage(self) -> Passage:
        """The sentence alone, under its passage's title."""
        return replace(self.source, id=f"{self.source.id}#{self.number}", text=self.text)


def split(text: str, language: str = LANGUAGE) -> tuple[str, ...]:
    """The sentences of a text, white space collapsed; none for a text without words."""
    return tuple(sentence for _, sentence in _split(text, language))


def sentences_of(passages: Iterable[Passage], language: str = LANGUAGE) -> tuple[Sentence, ...]:
    """All sentences of all passages, in order."""
    return tuple(
        Sentence(passage, number, text, gap)
        for passage in passages
        for number, (gap, text) in enumerate(_split(passage.text, language))
    )


def rejoined(sentences: Iterable[Sentence]) -> tuple[Passage, ...]:
    """The passages that the sentences come from, each with these sentences alone.

    Passages stand in the order of their first sentence, sentences in the order given.
    """
    texts: dict[Passage, str] = {}
    for sentence in sentences:
        before = texts.get(sentence.source, "")
        texts[sentence.source] = f"{before}{sentence.gap}{sentence.text}" if before else sentence.text
    return tuple(replace(source, text=text) for source, text in texts.items())


def choose(scores: Sequence[float], keep: Callable[[float], bool]) -> tuple[int, ...]:
    """Places of the sentences whose score is one to ``keep``, best first; ties go to the first."""
    return tuple(place for place in sorted(range(len(scores)), key=lambda place: -scores[place]) if keep(scores[place]))


def _split(text: str, language: str) -> Iterator[tuple[str, str]]:
    """(white space before it, sentence): a row or item stands on a line of its own, a paragraph after a blank one."""
    first = True
    for block, whole in _blocks(text):
        gap = " " if first else "\n" if whole else "\n\n"
        for piece in [block] if whole else _with_words(sentences([block], language)):
            if _WORD.search(piece):
                yield gap, collapse(piece)
                first = False
                gap = " " if piece[-1].isspace() else ""


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Stretches of text that no sentence goes beyond, and whether each is one sentence: a table row, a list item."""
    prose: list[str] = []
    item: list[str] = []
    for line in [*text.splitlines(), ""]:
        continued = bool(item) and line[:1].isspace() and bool(line.strip()) and not _ITEM.match(line)
        if continued and not _is_row(line):
            item.append(line)
            continue
        if item:
            yield " ".join(item), True
            item = []
        alone = _is_row(line) or bool(_ITEM.match(line))
        if prose and (alone or not line.strip()):
            yield " ".join(prose), False
            prose = []
        if _is_row(line):
            yield line, True
        elif alone:
            item = [line]
        elif line.strip():
            prose.append(line)


def _is_row(line: str) -> bool:
    """A row of a table: its cells are set apart by bars or tabs."""
    line = line.strip()
    return line.startswith("|") or line.count(" | ") > 1 or "\t" in line


def _with_words(pieces: Iterable[str]) -> Iterator[str]:
    """Pieces of punctuation alone belong to the sentence before, the first ones to the one behind."""
    before = ""
    for piece in pieces:
        if _WORD.search(before) and _WORD.search(piece):
            yield before
            before = ""
        before += piece
    if before:
        yield before
