"""PDF, by pypdfium2 (``pip install 'gnothi[documents]'``), in a process of its own. The title is the document's own, else the
file's name; each passage has the ``page`` its first word stands on, counted from 1, and its printed ``page_label`` where the
file gives another."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from gnothi.retrieval.ingest.base import Block, Unreadable
from gnothi.retrieval.ingest.outline import own_title
from gnothi.retrieval.ingest.split import collapse

_PAGES = 20_000
_PAGE_BYTES = 20  # a page of an honest file takes more
_CHARACTERS = 1_000_000  # of a page
_UNPACKED = 200, 10_000_000  # text may be so many times the file, and so much more
_SAMPLE = 20  # pages that are compared for repeated lines
_REPEATED = 4
_EDGE = 2  # lines at the top and at the bottom of a page, where running heads stand
_PICTURE = 0.5  # of the page
_STAMP = 10  # words: with a picture that large, no more are a stamp on a scanned page
_END = "\ufffe"  # pdfium's mark for a hyphen at the end of a line, which it joins to the next
_BREAK = re.compile(rf"([^\W\d_]+)(?:{_END}\n?|[-\u2010]\n|\u00ad\n?)(?=([^\W\d_]+))")
_COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_NUMBER = re.compile(r"\W*(\d{1,5})\W*(?:(?:of|/|von|de|sur|di|из)\W*\d+)?\W*")
_NO_LETTER = re.compile("[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f]")


def blocks(path: Path) -> Iterator[Block]:
    """One block a page, then notices. Raises Unreadable for what is no PDF, is encrypted, or unpacks to too much.

    Pdfium is not to be used by two threads at once: run by ``bounded`` alone.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    size = path.stat().st_size
    try:
        document = PdfDocument(path)
    except PdfiumError as error:
        if error.err_code == 4:  # FPDF_ERR_PASSWORD
            raise Unreadable(f"{path} is protected by a password. Save it without one (qpdf --decrypt).") from None
        raise Unreadable(
            f"{path} is not a PDF that can be read: {str(error).rstrip('.')}. Repair it, or convert it to text."
        ) from None
    count = len(document)
    if count > _PAGES or count * _PAGE_BYTES > size:
        raise Unreadable(
            f"{path} is refused: it has {count:,} pages in {size:,} bytes, and at most {_PAGES:,} of more than {_PAGE_BYTES} "
            "bytes each are read. Split it (qpdf --split-pages)."
        )
    title = own_title(document.get_metadata_dict().get("Title", "")) or path.stem
    pages = (_page(document, index) for index in range(count))
    failed: dict[str, list[int]] = {}
    allowed = _UNPACKED[0] * size + _UNPACKED[1]
    for page in _texts(pages):
        allowed -= len(page.text)
        if allowed < 0 or len(page.text) > _CHARACTERS:
            raise Unreadable(f"{path} is refused: its {size:,} bytes unpack to too much text. Leave it out.")
        if page.problem:
            failed.setdefault(page.problem, []).append(page.number)
        metadata: dict[str, str | int] = {"page": page.number}
        if page.label not in ("", str(page.number)):
            metadata["page_label"] = page.label
        yield Block(title, page.text, size * page.number // count, metadata=metadata)
    for problem, numbers in failed.items():
        yield Block(title, "", size, notice=problem.format(_pages(numbers)))


@dataclass(slots=True)
class _Page:
    number: int
    label: str = ""
    lines: tuple[tuple[str, ...], ...] = ()  # as they are read, each in the pieces between wide gaps
    problem: str = ""
    text: str = ""


_NO_TEXT = "holds pictures of text on {}, which are left out: OCRmyPDF (ocrmypdf FILE FILE) makes them readable"
_NO_MAP = "does not say which letters stand on {}: OCRmyPDF (ocrmypdf --force-ocr FILE FILE) may read them"
_BROKEN = "could not be read on {}"


def _page(document: Any, index: int) -> _Page:
    from pypdfium2 import PdfiumError

    result = _Page(index + 1)
    try:
        page = document[index]
    except PdfiumError:
        result.problem = _BROKEN
        return result
    result.label = collapse(document.get_page_label(index))
    parts = list(segments(_words(page)))
    if page.get_rotation() == 0:
        parts = in_order(parts)
    result.lines = tuple(tuple(segment.text for segment in line) for line in lines(parts))
    text = "".join(segment.text for segment in parts)
    words = sum(len(segment.text.split()) for segment in parts)
    if words < _STAMP and _is_picture(page, bare=not words):
        result.problem = _NO_TEXT
    elif 3 * len(_NO_LETTER.findall(text)) > len(text) > 0:
        result.problem = _NO_MAP
    page.close()
    return result


def _words(page: Any) -> Iterator[Segment]:
    """In the file's order. ``starts_line`` where pdfium ends a line before."""
    import ctypes

    from pypdfium2 import raw

    text = page.get_textpage()
    box = raw.FS_RECTF()
    place = ctypes.byref(box)
    letters: list[str] = []
    left = bottom = right = top = 0.0
    starts = True
    count = text.count_chars()
    if count > _CHARACTERS:
        letters = ["x"] * (_CHARACTERS + 1)  # the page is refused
        count = 0
    last = -1
    for index in range(count + 1):
        code = raw.FPDFText_GetUnicode(text, index) if index < count else 0x20
        letter = _END if code == 2 else chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        if not letter.isspace():
            if code < 32 and code != 2:
                continue
            if not letters:
                raw.FPDFText_GetLooseCharBox(text, index, place)
                left, bottom, right, top = box.left, box.bottom, box.right, box.top
            letters.append(letter)
            last = index
            if letter != _END:
                continue
        if letters:
            raw.FPDFText_GetLooseCharBox(text, last, place)
            yield Segment(
                "".join(letters), min(left, box.left), min(bottom, box.bottom), max(right, box.right), max(top, box.top), starts
            )
            letters, starts = [], False
        starts = starts or letter in "\r\n" or letter == _END
    text.close()


def _is_picture(page: Any, bare: bool) -> bool:
    """Whether a picture takes much of the page, or, where it holds no text, whether there are letters drawn as lines."""
    from pypdfium2 import raw

    area = page.get_width() * page.get_height() or 1.0
    drawn = 0
    for item in islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH]), 1000):
        if item.type == raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = item.get_bounds()
            if (right - left) * (top - bottom) >= _PICTURE * area or (bare and (right - left) * (top - bottom) >= 0.05 * area):
                return True
        drawn += 1
    return bare and drawn >= 50


def _texts(pages: Iterable[_Page]) -> Iterator[_Page]:
    """Pages with their text: without page numbers and lines that most pages repeat, words that a line's end divides put
    together."""
    pages = iter(pages)
    first = list(islice(pages, _SAMPLE))
    furniture = _Furniture(first)
    compounds: set[str] = set()
    held: _Page | None = None
    for page in chain(first, pages):
        page.text = "".join(" ".join(line) + "\n" for line in furniture.without(page))
        compounds.update(match[0].lower() for match in _COMPOUND.finditer(page.text))
        page.lines = ()
        if held is not None:
            # The end of a page with the beginning of the next, for a word that both share.
            joined = _joined(held.text + page.text[:100], compounds)
            beginning = _joined(page.text[:100], compounds)
            if page.text and joined.endswith(beginning):
                held.text = joined.removesuffix(beginning)
            yield held
        held = page
    if held is not None:
        held.text = _joined(held.text, compounds)
        yield held
    return


def _joined(text: str, compounds: set[str]) -> str:
    """A hyphen goes where a line's end put it. It stays before a capital, and in a word that the document spells so."""

    def ending(match: re.Match[str]) -> str:
        word, rest = match[1], match[2]
        return f"{word}-" if rest[0].isupper() or f"{word}-{rest}".lower() in compounds else word

    return _BREAK.sub(ending, text).replace(_END, "-")


class _Furniture:
    """Running heads and page numbers, by a sample of pages. A head stays where it stands first, so that no words are lost."""

    def __init__(self, sample: list[_Page]) -> None:
        counts = Counter(piece for page in sample for piece in {p for line in _edges(page) for p in line})
        self.heads = {piece for piece, times in counts.items() if times >= _REPEATED and 3 * times >= len(sample)}
        offsets = Counter(
            offset for page in sample for offset in {o for line in _edges(page) for p in line for o in _offset(p, page)}
        )
        ((self.offset, times),) = offsets.most_common(1) or [(0, 0)]
        self.numbered = times >= _REPEATED and 2 * times >= len(sample)
        self.printed: set[tuple[str, ...]] = set()

    def without(self, page: _Page) -> list[tuple[str, ...]]:
        top, bottom = page.lines[:_EDGE], page.lines[_EDGE:][-_EDGE:]
        middle = page.lines[len(top) : len(page.lines) - len(bottom)]
        return [*self._unrepeated(top, page), *middle, *self._unrepeated(bottom, page)]

    def _unrepeated(self, edge: Iterable[tuple[str, ...]], page: _Page) -> Iterator[tuple[str, ...]]:
        for line in edge:
            words = tuple(piece for piece in line if not (self.numbered and self.offset in _offset(piece, page)))
            if any(piece not in self.heads for piece in words):
                yield line
            elif words and words not in self.printed:
                self.printed.add(words)
                yield words


def _edges(page: _Page) -> list[tuple[str, ...]]:
    return [*page.lines[:_EDGE], *page.lines[_EDGE:][-_EDGE:]]


def _offset(piece: str, page: _Page) -> Iterator[int]:
    if match := _NUMBER.fullmatch(piece):
        yield int(match[1]) - page.number


def _pages(numbers: list[int]) -> str:
    """ "page 4", "pages 3-7, 9"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    ranges = ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in runs[:20])
    return f"page{'s' if len(numbers) > 1 else ''} {ranges}{' ...' if len(runs) > 20 else ''}"


# The order in which a page is read: where its text jumps to and fro across a free strip between two columns, the column on the
# left is read first. Rows of tables stay rows.

_GAP = 0.7  # in heights of a line: wider gaps are not those between words
_ROWS = 3  # fewer rows with text on both sides are no columns
_PROSE = 8.0  # in heights of a line: a line of a column of text is mostly wider, a cell of a table mostly not
_EVEN = 0.75  # of the widest lines' width: what half of the lines of a column of text reach


@dataclass(frozen=True, slots=True)
class Segment:
    """Words side by side. Lengths are in points, y grows upwards; ``starts_line`` says whether the file begins a line with
    it."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    starts_line: bool = True

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)

    @property
    def width(self) -> float:
        return self.right - self.left

    def beside(self, other: Segment) -> bool:
        """Whether both stand in one row."""
        shared = min(self.top, other.top) - max(self.bottom, other.bottom)
        return shared > 0.5 * min(self.height, other.height)

    def joins(self, word: Segment) -> bool:
        """Whether the word goes on where the segment ends."""
        return self.beside(word) and -self.height < word.left - self.right <= _GAP * min(self.height, word.height)


def segments(words: Iterator[Segment]) -> Iterator[Segment]:
    """Words in the file's order, put together up to each line's end and each wide gap."""
    held: Segment | None = None
    for word in words:
        if held is not None and not word.starts_line and held.joins(word):
            held = Segment(
                f"{held.text} {word.text}", min(held.left, word.left), min(held.bottom, word.bottom),
                max(held.right, word.right), max(held.top, word.top), held.starts_line,
            )  # fmt: skip
            continue
        if held is not None:
            yield held
        held = word
    if held is not None:
        yield held


def in_order(parts: Sequence[Segment]) -> list[Segment]:
    """The segments as they are read."""
    for gutter in _gutters(parts):
        ordered: list[Segment] = []
        changed = False
        for run in _runs(parts, gutter):
            sides = [s for s in run if s.right <= gutter], [s for s in run if s.right > gutter]
            if _jumps(run, gutter) < _ROWS or not _are_columns(*sides):
                ordered += run
                continue
            changed = True
            for side in reversed(sides) if _leftwards(run) else sides:
                ordered += in_order(side)
        if changed:
            return ordered
    return list(parts)


def lines(parts: Sequence[Segment]) -> list[list[Segment]]:
    """Segments that are read one after the other in one row make up a line."""
    rows: list[list[Segment]] = []
    for segment in parts:
        if rows and rows[-1][-1].beside(segment) and segment.left >= rows[-1][-1].right - segment.height:
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return rows


def _between(a: Segment, b: Segment) -> tuple[float, float] | None:
    """The free strip that the text jumps over from ``a`` to ``b`` within a row."""
    if not a.beside(b):
        return None
    first, second = (a, b) if a.left < b.left else (b, a)
    return (first.right, second.left) if first.right < second.left else None


def _gutters(parts: Sequence[Segment]) -> list[float]:
    """Where most jumps cross, the most frequent place first."""
    strips = [strip for a, b in pairwise(parts) if (strip := _between(a, b))]
    gutters = []
    while len(strips) >= _ROWS:
        ends = sorted([(left, 0) for left, _ in strips] + [(right, 1) for _, right in strips])
        inside = most = 0
        best = (0.0, 0.0)
        for (place, closes), (next_place, _) in pairwise(ends):
            inside += -1 if closes else 1
            if inside > most:
                most, best = inside, (place, next_place)
        if most < _ROWS:
            break
        gutter = sum(best) / 2
        gutters.append(gutter)
        strips = [(left, right) for left, right in strips if not left <= gutter <= right]
    return gutters


def _runs(parts: Sequence[Segment], gutter: float) -> Iterator[list[Segment]]:
    """Stretches of text that leave the gutter free; what crosses it (a title, a picture's caption) stands between them."""
    run: list[Segment] = []
    for segment in parts:
        if segment.left < gutter < segment.right:
            yield from filter(None, [run, [segment]])
            run = []
        else:
            run.append(segment)
    yield from filter(None, [run])


def _jumps(run: Sequence[Segment], gutter: float) -> int:
    strips = (_between(a, b) for a, b in pairwise(run))
    return sum(strip is not None and strip[0] <= gutter <= strip[1] for strip in strips)


def _are_columns(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Whether both sides are running text, whose lines are long and mostly reach the column's end; cells of a table do not."""
    shares = []
    for side in (left, right):
        if len(side) < _ROWS:
            return False
        widest = quantiles([segment.width for segment in side], n=10)[-1]
        line = median(segment.height for segment in side)
        shares.append([segment.width >= max(_PROSE * line, _EVEN * widest) for segment in side])
    both = [*shares[0], *shares[1]]
    return 2 * sum(both) >= len(both) and all(3 * sum(share) >= len(share) for share in shares)


def _leftwards(run: Sequence[Segment]) -> bool:
    """Whether most letters are of a script that is written from right to left."""
    letters = [unicodedata.bidirectional(letter) for segment in run for letter in segment.text if letter.isalpha()]
    return 2 * sum(kind in ("R", "AL") for kind in letters) > len(letters)
