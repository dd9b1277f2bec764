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

    def weigh(self, stage: str, known: Mapping[str, float]) -> Weighed | None:
        self.known[stage] = set(known)
        if stage not in self.gains:
            return None
        return Weighed(max(self.gains[stage], 0), max(-self.gains[stage], 0), *self.right, 0.1, self.gains[stage] > 0.1)
