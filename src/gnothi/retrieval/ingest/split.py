"""Long text to passages of about so many words, cut between sentences. Streams: holds two passages and little more."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from itertools import accumulate, dropwhile, groupby

from gnothi.retrieval.scripts import HAN_AND_KANA, SOUTH_EAST_ASIAN

DEFAULT_WORDS = 100  # DPR (Karpukhin et al., 2020, section 4.1)

# Raised when a change here or in a reader gives other passages of the same file, so that sources indexed before are read again.
SPLIT_VERSION = 4
# Where words are not set apart, two characters of Chinese or Japanese count as one, or five of Thai, Lao, Khmer or Burmese (in
# XQuAD, 1.7 characters of Chinese to a word of English). Of another run without spaces (an address, say) 40 characters do.
_WORD_LETTERS = 40
_UNSPACED = re.compile(f"[{HAN_AND_KANA}{SOUTH_EAST_ASIAN}]")
_WORD = re.compile(
    rf"\s*(?:[{HAN_AND_KANA}]{{1,2}}|[{SOUTH_EAST_ASIAN}]{{1,5}}"
    rf"|[^\s{HAN_AND_KANA}{SOUTH_EAST_ASIAN}]{{1,{_WORD_LETTERS}}})\s*"
)
LANGUAGE = ContextVar("language", default="en")
"""In which sentences end, as a code: a build sets that of its index."""
_SLICE = 1500  # characters, at most four bytes each
_SEGMENTER_BYTES = 8000
_LONGEST_LINE = 1 << 16

Piece = tuple[str, int]  # text with its white space, number of words


class Code(str):
    """Text whose lines are kept."""

    __slots__ = ()


def split(blocks: Iterable[str], words: int) -> Iterator[str]:
    """Passages of at most ``words`` words; 0 gives one passage, however long. White space is collapsed, but in ``Code``, where
    lines stay whole.

    ``blocks`` are consecutive parts of one text, cut anywhere. Sentences stay whole unless one alone is longer than ``words``.
    A last passage under a quarter of the length shares the sentences of the one before.
    """
    if words == 0:
        yield from filter(None, [_text([(block, 0) for block in blocks])])
        return
    previous: list[Piece] = []
    current: list[Piece] = []
    length = 0
    for piece, size in _all_pieces(blocks, words):
        if length + size > words and length:
            if previous:
                yield _text(previous)
            previous, current, length = current, [], 0
        current.append((piece, size))
        length += size
    for passage in _balanced(previous, current, words):
        if text := _text(passage):
            yield text


def collapse(text: str) -> str:
    """Runs of white space as single spaces, none at the ends."""
    return " ".join(text.split())


def count_words(text: str) -> int:
    words = text.split()
    if max(map(len, words), default=0) <= _WORD_LETTERS and (text.isascii() or not _UNSPACED.search(text)):
        return len(words)
    return sum(1 for _ in _WORD.finditer(text))


def fits(text: str, words: int) -> bool:
    """Whether it has at most so many words."""
    if text.isascii() and len(text.split()) + len(text) // _WORD_LETTERS <= words:
        return True
    return count_words(text) <= words


def sentences(blocks: Iterable[str], language: str = "") -> Iterator[str]:
    """Sentences with their white space; joined they are the text. The last one of a slice may go on in the next.

    ``language`` is a code like "en" or "de" (by default ``LANGUAGE``): which abbreviations and ordinal numbers do not end a
    sentence."""
    held, language = "", language or LANGUAGE.get()
    for text in _slices(blocks):
        *whole, held = _segments(held, text, language)
        yield from whole
    yield held


def _slices(blocks: Iterable[str]) -> Iterator[str]:
    """The same text in slices of one length, so that where the blocks end makes no difference."""
    held = ""
    for block in blocks:
        held += block
        for start in range(0, len(held) - _SLICE + 1, _SLICE):
            yield held[start : start + _SLICE]
        held = held[len(held) // _SLICE * _SLICE :]
    yield held


def _segments(held: str, more: str, language: str) -> list[str]:
    """The segmenter's sentences. It loses line ends in texts over about 8,000 bytes (sentencex 1.0.32), so it gets no such
    text, and is held to giving back what it got."""
    from sentencex import segment

    text = held + more
    if len(text.encode("utf-8", "replace")) > _SEGMENTER_BYTES:
        return [held, *_segments("", more, language)]
    parts: list[str] = segment(language, text)
    return parts if parts and "".join(parts) == text else [text]


def _all_pieces(blocks: Iterable[str], words: int) -> Iterator[Piece]:
    for kind, run in groupby(blocks, key=type):
        pieces = code_pieces if kind is Code else _sentence_pieces
        yield from pieces(run, words)


def _sentence_pieces(blocks: Iterable[str], words: int) -> Iterator[Piece]:
    return _pieces(sentences(blocks), words)


def _pieces(sentences: Iterable[str], words: int) -> Iterator[Piece]:
    """Sentences; one that is too long in parts of equal numbers of words."""
    for sentence in sentences:
        size = count_words(sentence)
        if size <= words:
            yield sentence, size
            continue
        parts = -(-size // words)
        units = _WORD.findall(sentence)
        for i in range(parts):
            chosen = units[size * i // parts : size * (i + 1) // parts]
            yield "".join(chosen), len(chosen)


def code_pieces(blocks: Iterable[str], words: int) -> Iterator[Piece]:
    """Whole lines, cut where a definition or a paragraph of the code begins, if one does after a third of the length; only a
    line that is longer than ``words`` is cut."""
    held: list[Piece] = []
    length = 0
    for line in _lines(blocks):
        for piece in _pieces([line], words):
            while length + piece[1] > words and length:
                cut = _cut([*held, piece])
                yield _joined(held[:cut])
                held = held[cut:]
                length = sum(size for _, size in held)
            held.append(piece)
            length += piece[1]
    if held:
        yield _joined(held)


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    """Lines with their ends. One of over 64 KiB is no line that a person wrote: it is given in parts."""
    held: list[str] = []
    size = 0
    for block in blocks:
        for part in block.splitlines(keepends=True):
            held.append(part)
            size += len(part)
            if part[-1] in "\r\n" or size > _LONGEST_LINE:
                yield "".join(held)
                held, size = [], 0
    if held:
        yield "".join(held)


def _cut(lines: list[Piece]) -> int:
    def strength(place: int) -> int:
        after_blank = not lines[place - 1][0].strip()
        return 2 * after_blank + (after_blank and not lines[place][0][0].isspace())

    return max(range(max(1, len(lines) // 3), len(lines)), key=lambda place: (strength(place), place))


def _joined(lines: list[Piece]) -> Piece:
    return Code("".join(text for text, _ in lines)), sum(size for _, size in lines)


def _balanced(previous: list[Piece], last: list[Piece], words: int) -> Iterator[list[Piece]]:
    length = sum(size for _, size in last)
    if not previous or length * 4 >= words:
        yield from filter(None, [previous, last])
        return
    both = previous + last
    sums = list(accumulate(size for _, size in both))
    total = sums[-1]
    cuts = [i for i in range(1, len(both)) if sums[i - 1] <= words and total - sums[i - 1] <= words]
    cut = min(cuts, key=lambda i: abs(total - 2 * sums[i - 1]))
    yield both[:cut]
    yield both[cut:]


def _text(pieces: list[Piece]) -> str:
    runs = ((kind is Code, "".join(text for text, _ in run)) for kind, run in groupby(pieces, key=lambda piece: type(piece[0])))
    return "\n".join(filter(None, (_tidy(text) if code else collapse(text) for code, text in runs)))


def _tidy(code: str) -> str:
    """Without spaces at the ends of lines and empty lines at both ends."""
    lines = [line.rstrip() for line in code.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(dropwhile(operator.not_, lines))
