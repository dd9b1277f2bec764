"""Answers grouped by meaning, and whether the largest group is large enough (KEQA, section 3.3 and algorithm 1).

Semantic entropy has another rule (``kinds/semantic_entropy.py``)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gnothi.signals.replies import normalized, says_nothing

Same = Callable[[str, str], Awaitable[bool]]
"""Whether two answers, an earlier and a later one, mean the same."""


@dataclass(slots=True)
class Group:
    """Answers of one meaning in the order in which they came. Equal normalised texts count as one form."""

    answers: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The answer that stands for the group: the first one of its most common form; of equally common ones the oldest."""
        forms = Counter(normalized(answer) for answer in self.answers)
        common = max(forms, key=forms.__getitem__)  # the first of several maxima: a Counter keeps the order of arrival
        return next(answer for answer in self.answers if normalized(answer) == common)

    @property
    def size(self) -> int:
        return len(self.answers)

    def has(self, answer: str) -> bool:
        """Whether an answer of this form is here already."""
        return normalized(answer) in {normalized(one) for one in self.answers}


@dataclass(slots=True)
class Groups:
    """Groups that grow answer by answer. An answer that is blank or says "unknown" belongs to none."""

    groups: list[Group] = field(default_factory=list)
    unknown: int = 0

    @property
    def count(self) -> int:
        """The number of answers so far, unknown ones included: the denominator."""
        return self.unknown + sum(group.size for group in self.groups)

    @property
    def largest(self) -> Group | None:
        """The group with the most answers, of equally large ones the oldest; None where there is no group."""
        return max(self.groups, key=lambda group: group.size, default=None)

    async def add(self, answer: str, same: Same | None = None) -> None:
        """Into the group that holds its form, else into the first whose anchor ``same``, if given, finds equal,
        else into a new one."""
        if says_nothing(answer):
            self.unknown += 1
            return
        home = next((group for group in self.groups if group.has(answer)), None)
        if home is None and same is not None:
            for group in self.groups:
                if await same(group.anchor, answer):
                    home = group
                    break
        if home is None:
            home = Group()
            self.groups.append(home)
        home.answers.append(answer)


def needed(alpha: float, tries: int) -> int:
    """The fewest of ``tries`` answers whose share reaches ``alpha``; at least one, for silence is no knowledge.

    1e-9 below the product, because 0.6 * 5 and the like may come out a hair above the whole number they mean."""
    return max(1, math.ceil(alpha * tries - 1e-9))


@dataclass(frozen=True, slots=True)
class Tally:
    """How a count of answers stands: ``largest`` of ``count`` answers agree, ``needed`` of ``tries`` would have to."""

    largest: int
    count: int
    needed: int
    tries: int

    @property
    def known(self) -> bool:
        return self.largest >= self.needed

    @property
    def hopeless(self) -> bool:
        """No group, nor a new one, can still become large enough."""
        return self.largest + self.tries - self.count < self.needed

    @property
    def settled(self) -> bool:
        """More tries cannot change whether the answer is known."""
        return self.known or self.hopeless
