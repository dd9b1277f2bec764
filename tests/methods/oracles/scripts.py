"""What scripted models and retrievers say in the oracles of whole courses: drawn from the seed and from what they are asked.

Replies are like those of models: long, with commas, numbers, abbreviations, "yes, since ...", repeated and blank ones, and
conclusions with and without a full stop. Searches find few passages, none, or the same text under two names.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from gnothi.types import Passage, ScoredPassage

QUESTION = "Who is the founder of the Amber Line, then?"
TOPICS = ("Amber", "Dr. Birch", "Cedar", "J. R. R. Dune", "Ember")
ANSWERS = ("Nairobi, Kenya", "15,140", "3.5 km", "yes, since both are", "no", "the Amber Line", "12 May 1902", "St. Orm")
POOL = tuple(
    Passage(f"p{number}{again}", f"What {number} has, and where.", f"About {number}")
    for number in range(20)
    for again in (("", " again") if number < 5 else ("",))
)


@dataclass
class Course:
    """One question's script, and what was searched and shown to the model."""

    seed: int
    searched: list[str] = field(default_factory=list)
    read: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def draw(self, *asked: object) -> random.Random:
        return random.Random(f"{self.seed} {asked}")

    def find(self, query: str, k: int) -> list[Passage]:
        """Notes the query."""
        self.searched.append(query)
        draw = self.draw("found", query)
        return draw.sample(POOL, draw.choice([0, 1, k, k, k, k + 2]))[:k]

    def fact(self, draw: random.Random) -> str:
        topic, answer = draw.choice(TOPICS), draw.choice(ANSWERS)
        return draw.choice(
            [
                f"{topic} had {draw.randint(1, 99)},{draw.randint(100, 999)} people, of whom {answer} is told.",
                f"It is {answer}, which is where {topic} was found!",
                f"{topic} is so.",
            ]
        )


@dataclass(frozen=True)
class Searcher:
    """A retriever that finds what the course scripts."""

    course: Course
    name: str = "scripted"

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        return tuple(ScoredPassage(one, 1 / rank) for rank, one in enumerate(self.course.find(query, k), 1))

    async def aclose(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True)
class Outcome:
    searched: tuple[str, ...]
    kept: tuple[str, ...]
    """Ids of the passages that the answer stands on."""
    read: frozenset[tuple[str, tuple[str, ...]]]
    """What the model was shown: the text so far, and the ids of passages."""
    answer: str

    @classmethod
    def of(cls, course: Course, kept: list[Passage], answer: str) -> Outcome:
        return cls(tuple(course.searched), tuple(one.id for one in kept), frozenset(course.read), " ".join(answer.split()))


def cut(text: str, tokens: int) -> str:
    """As a model leaves it that may write so many words, which are its tokens."""
    return "".join(re.findall(r"\s*\S+|\s+$", text)[:tokens])


def names(passages: tuple[Passage, ...] | list[Passage]) -> tuple[str, ...]:
    return tuple(one.id for one in passages)
