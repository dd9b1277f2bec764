"""Energy of the greedy continuation (Liu et al. 2020; SeaKR, section 5.1).

The energy at a position is -logsumexp of its raw logits: higher is less certain. The code of SeaKR's authors uses the opposite
sign, under which the gate retrieves when the model is most certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from gnothi.signals.base import ComputedSignal, Continued
from gnothi.types import Capabilities


def mean_energy(logsumexps: Sequence[float]) -> float:
    """Mean energy over positions, given each one's logsumexp; infinity for none."""
    return -fmean(logsumexps) if logsumexps else float("inf")


@dataclass(frozen=True, slots=True)
class Energy(ComputedSignal):
    name: ClassVar[str] = "energy"
    needs: ClassVar[Capabilities] = Capabilities(logprobs=True, energy=True)
    # Logits have another offset in every model: no threshold is usual.
    default_threshold: ClassVar[float | None] = None

    def compute(self, continued: Continued) -> float:
        positions = [token.logsumexp for token in continued.greedy.tokens if token.logsumexp is not None]
        return mean_energy(positions) if continued.greedy.text.strip() else float("inf")
