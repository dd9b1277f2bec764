"""The order in which a page is read: where its text jumps to and fro across a free strip between two columns, the column on the
left is read first. Rows of tables stay rows."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

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


def in_order(found: Sequence[Segment]) -> list[Segment]:
    """The segments as they are read."""
    for gutter in _gutters(found):
        ordered: list[Segment] = []
        changed = False
        for run in _runs(found, gutter):
            sides = [s for s in run if s.right <= gutter], [s for s in run if s.right > gutter]
            if _jumps(run, gutter) < _ROWS or not _are_columns(*sides):
                ordered += run
                continue
            changed = True
            for side in reversed(sides) if _leftwards(run) else sides:
                ordered += in_order(side)
        if changed:
            return ordered
    return list(found)


def lines(found: Sequence[Segment]) -> list[list[Segment]]:
    """Segments that are read one after the other in one row make up a line."""
    made: list[list[Segment]] = []
    for segment in found:
        if made and made[-1][-1].beside(segment) and segment.left >= made[-1][-1].right - segment.height:
            made[-1].append(segment)
        else:
            made.append([segment])
    return made


def _between(a: Segment, b: Segment) -> tuple[float, float] | None:
    """The free strip that the text jumps over from ``a`` to ``b`` within a row."""
    if not a.beside(b):
        return None
    first, second = (a, b) if a.left < b.left else (b, a)
    return (first.right, second.left) if first.right < second.left else None


def _gutters(found: Sequence[Segment]) -> list[float]:
    """Where most jumps cross, the most frequent place first."""
    strips = [strip for a, b in pairwise(found) if (strip := _between(a, b))]
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


def _runs(found: Sequence[Segment], gutter: float) -> Iterator[list[Segment]]:
    """Stretches of text that leave the gutter free; what crosses it (a title, a picture's caption) stands between them."""
    run: list[Segment] = []
    for segment in found:
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
