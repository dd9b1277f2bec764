"""A learnt gate that says what it is told to, for tests of what goes by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gnothi.filtering.learned import Weighed


@dataclass
class Fixed:
    """Goes on from the stages that it has a positive gain for; ``right``: how likely both answers are."""

    gains: Mapping[str, float]
    right: tuple[float, float] = (0.6, 0.7)
    sure_enough: float = 0.0
    known: dict[str, set[str]] = field(default_factory=dict)
    looks: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """By stage: what may be looked at, and what that gains; .2 is needed."""
    measures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def features(self, stage: str) -> tuple[str, ...]:
        return self.measures.get(stage, ())

    def weigh(self, stage: str, known: Mapping[str, float]) -> Weighed | None:
        self.known[stage] = set(known)
        if stage not in self.gains:
            return None
        look = (*self.looks[stage], 0.2) if stage in self.looks else None
        return Weighed(max(self.gains[stage], 0), max(-self.gains[stage], 0), *self.right, 0.1, self.gains[stage] > 0.1, look)
