"""Self-aware re-ranking: keep the passage under which the model is least uncertain (SeaKR, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gnothi import events
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured, Signal
from gnothi.signals.drawing import Comparison
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Decoding, Passage, Prompt


@dataclass(frozen=True, slots=True)
class Chosen:
    """The passage that won and the continuation of the context that holds it."""

    passage: Passage
    measured: Measured


@dataclass(frozen=True, slots=True)
class LeastUncertain:
    """Reads the prompt once with each candidate behind its own passages, all at a time, and takes the lowest uncertainty.

    A context under which the model says nothing, or that it does not know, comes last; ties go to the candidate that came
    first. Emits Ranked with kind ``passage`` and one (passage id, passage text, score) per candidate, then Drafted with the
    winner's continuation.
    """

    signal: Signal
    silent: Callable[[str], bool] = says_nothing

    async def __call__(self, model: LanguageModel, prompt: Prompt, candidates: Sequence[Passage], decoding: Decoding) -> Chosen:
        """``candidates`` holds at least one passage, best first."""
        contexts = [replace(prompt, passages=(*prompt.passages, passage)) for passage in candidates]
        measured = await Comparison(self.signal, self.silent)(model, [(context, decoding) for context in contexts])
        pairs = [Chosen(passage, result) for passage, result in zip(candidates, measured, strict=True)]

        def place(pair: Chosen) -> tuple[bool, float]:
            """The uncertainty of what says nothing does not count."""
            silent = self.silent(pair.measured.greedy.text)
            return silent, 0.0 if silent else pair.measured.uncertainty

        ranked = sorted(pairs, key=place)
        events.emit(
            events.Ranked("passage", tuple((pair.passage.id, pair.passage.text, pair.measured.score) for pair in ranked))
        )
        events.emit(events.Drafted(ranked[0].measured.greedy.text.strip(), ranked[0].measured.score))
        return ranked[0]


# Self-aware reasoning: of answers reached in several ways, trust the least uncertain (SeaKR, section 3.4).


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer, the strategy that led to it and the strategy's uncertainty."""

    strategy: str
    text: str
    uncertainty: float
    rationale: str = ""
    evidence: tuple[Passage, ...] = ()

    @classmethod
    def of(cls, strategy: str, answer: Answer) -> Candidate:
        """An answer that stands already; one without a measure of its uncertainty loses to any other."""
        uncertainty = math.inf if answer.uncertainty is None else answer.uncertainty
        return cls(strategy, answer.text, uncertainty, answer.rationale, answer.evidence)

    @property
    def score(self) -> float | None:
        """The uncertainty, None where it could not be measured."""
        return self.uncertainty if math.isfinite(self.uncertainty) else None


def least_uncertain(candidates: Sequence[Candidate], silent: Callable[[str], bool] = says_nothing) -> Candidate:
    """The candidate of lowest uncertainty; one that is ``silent`` (empty, "unknown") loses to any other; ties go to the first.

    Emits Ranked with kind ``answer`` and one (strategy, answer, score) per candidate. ``candidates`` holds at least one.
    """
    ranked = sorted(candidates, key=lambda candidate: (silent(candidate.text), candidate.uncertainty))
    events.emit(events.Ranked("answer", tuple((candidate.strategy, candidate.text, candidate.score) for candidate in ranked)))
    return ranked[0]
