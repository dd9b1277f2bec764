"""Self-aware reasoning: of answers reached in several ways, trust the least uncertain (SeaKR, section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Passage


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


def least_uncertain(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate of lowest uncertainty; one that is empty or "unknown" loses to any other; ties go to the first.

    Emits Ranked with kind ``answer`` and one (strategy, answer, score) per candidate. ``candidates`` holds at least one.
    """
    ranked = sorted(candidates, key=lambda candidate: (says_nothing(candidate.text), candidate.uncertainty))
    events.emit(events.Ranked("answer", tuple((one.strategy, one.text, one.score) for one in ranked)))
    return ranked[0]
