"""Advantages of the replies to one question (SKILL-RAG, section 4.2), in plain numpy.

Two things are ours. The paper prints "lambda A + (1 - lambda)" and no second factor, which would add a constant: we take it
to be the rank advantage, which is defined beside it and used nowhere else. And the formula of the entropy-weighted advantage is
missing from every copy we found: A exp(-beta H) is a reconstruction from its motivation, that a reply of high reward and
low probability makes learning unstable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
EntropyWeighting = Literal["none", "positive", "symmetric"]


def normalised(rewards: ArrayLike) -> Floats:
    """(r - mean) / std within each group; rewards of shape (groups, replies). The population's std; where it is 0, 0."""
    r = np.asarray(rewards, dtype=np.float64)
    spread = r.std(axis=1, keepdims=True)
    # The mean of equal numbers may differ from them by rounding, which dividing by their spread would blow up.
    none = (np.ptp(r, axis=1, keepdims=True) == 0) | (spread == 0)
    return np.asarray(np.where(none, 0.0, (r - r.mean(axis=1, keepdims=True)) / np.where(none, 1.0, spread)))


def ranked(rewards: ArrayLike) -> Floats:
    """(rank - (G + 1) / 2) / (G / 2) within each group of G; the lowest reward ranks 1, ties share their mean rank."""
    from scipy.stats import rankdata

    r = np.asarray(rewards, dtype=np.float64)
    size = r.shape[1]
    return np.asarray((rankdata(r, axis=1) - (size + 1) / 2) / (size / 2))


@dataclass(frozen=True, slots=True)
class AdvantageRule:
    """``mix`` is the paper's lambda, ``beta`` the strength of the entropy's weight, ``entropy`` which advantages it damps:
    positive ones, or both (``symmetric``)."""

    mix: float = 0.5
    entropy: EntropyWeighting = "positive"
    beta: float = 1.0

    def __call__(self, rewards: ArrayLike, entropies: ArrayLike | None = None) -> Floats:
        """Rewards, and mean token entropies of the replies in nats where they count, of shape (groups, replies)."""
        advantages = self.mix * normalised(rewards) + (1 - self.mix) * ranked(rewards)
        if not self.needs_entropies:
            return advantages
        if entropies is None:
            raise ValueError(f"entropy weighting {self.entropy!r} needs the replies' entropies")
        weights = np.exp(-self.beta * np.asarray(entropies, dtype=np.float64))
        damped = (advantages > 0) if self.entropy == "positive" else np.ones_like(advantages, dtype=bool)
        return np.asarray(np.where(damped, advantages * weights, advantages))

    @property
    def needs_entropies(self) -> bool:
        return self.entropy != "none" and self.beta != 0
