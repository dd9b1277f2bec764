"""About how long a recipe takes and how much memory, before it starts: a guess from sizes, not a measurement."""

from __future__ import annotations

from dataclasses import dataclass

from gnothi.reproduce import resources
from gnothi.reproduce.parts import Part

TOKENS = {
    "direct": 600, "cot": 1_000, "rag": 1_500, "skr": 1_500, "slimplm": 3_000, "filco": 3_000, "refeed": 8_000, "gkp": 8_000,
    "flare": 6_000, "dragin": 6_000, "ircot": 8_000, "adaptive_rag": 8_000, "react": 9_000, "searchain": 9_000, "rowen": 9_000,
    "self_rag": 10_000, "crag": 12_000, "skill_rag": 12_000, "iekr": 12_000, "keqa": 15_000, "seakr": 25_000,
}  # fmt: skip
"""That a question makes a model read and write, by method: the order of size in our runs with demonstrations in plain text."""
_OTHER = 10_000
_RATE = 2e13
"""Operations a second that are put to use by one GPU of a data centre."""
_WEIGHT, _ROOM = 2, 1.3
"""Bytes of a weight in half precision; what caches and batches take on top."""
_LEARNING = 3.0
"""What training with an adapter takes, times what answering does."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """``answers``: questions times rows. ``hours`` are of one GPU, ``gigabytes`` of its memory; None for models that run
    elsewhere, or that nothing is known of."""

    answers: int
    tokens: int
    hours: float | None
    gigabytes: float | None

    @property
    def words(self) -> str:
        said = f"{self.answers:,} answers, about {self.tokens / 1e6:,.0f} million tokens read and written"
        if self.hours is not None:
            said += f"; about {max(self.hours, 0.1):,.1f} hours of one data-centre GPU"
        if self.gigabytes is not None:
            said += f" and {self.gigabytes:.0f} GB of its memory"
        return f"{said}. This is a guess from sizes: the run says it more exactly after its first answers."


def estimate(parts: list[Part], counted: dict[str, int]) -> Estimate:
    """``counted``: the questions of each part."""
    answers = tokens = 0
    operations, memory = 0.0, [0.0]
    known = True
    for part in parts:
        for row in part.study.variants:
            number = counted[part.name]
            spent = number * TOKENS.get(row.method, _OTHER)
            model = resources.model(row.model or part.model)
            answers, tokens = answers + number, tokens + spent
            known &= bool(model and model.billions)
            billions = model.billions if model else 0.0
            operations += 2e9 * billions * spent
            memory.append(billions * _WEIGHT * _ROOM * (_LEARNING if part.trainings else 1))
    hours, gigabytes = operations / _RATE / 3600, max(memory)
    return Estimate(answers, tokens, hours if known else None, gigabytes if known else None)
