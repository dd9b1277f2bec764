"""What a reply to "do you know?" is worth (SKILL-RAG, section 4.2, "Prompt and Reward Design").

The best rule under this table says Yes exactly where acc > (sqrt(5) - 1) / 2: a model whose answer is right with probability
acc earns acc (2 acc - 1) - (1 - acc) = 2 acc ** 2 - 1 with Yes and 1 - 2 acc with No, equal where acc ** 2 + acc = 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnothi.methods.steps.parsing import as_choice, read_reply
from gnothi.metrics import METRICS

# Advantages of the replies to one question (SKILL-RAG, section 4.2), in plain numpy.
#
# Two things are ours. The paper prints "lambda A + (1 - lambda)" and no second factor, which would add a constant: we take it
# to be the rank advantage, which is defined beside it and used nowhere else. The formula of the entropy-weighted advantage is
# missing from every copy we found: A exp(-beta H) is a reconstruction from its motivation, that a reply of high reward and
# low probability makes learning unstable.
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


INDIFFERENT = (math.sqrt(5) - 1) / 2
"""The familiarity at which Yes and No are worth the same: above it, a question counts as known."""
YES, NO = "Yes, I know: {answer}.", "No, I don't know."

_YES = re.compile(r"\s*yes,?\s+i\s+know\b[\s.:,;!–—-]*", re.IGNORECASE)
_NO = re.compile(r"\s*no,?\s+i\s+(?:don['’]t|do\s+not)\s+know\b", re.IGNORECASE)

Verdict = Literal["right", "wrong", "no", "neither"]


@dataclass(frozen=True, slots=True)
class Correctness:
    """How an answer is held against the gold answers: by a metric of ``gnothi.metrics``, right above ``above``."""

    metric: str = "accuracy"
    above: float = 0.5

    def __call__(self, answer: str, golds: Sequence[str], choices: Sequence[str] = ()) -> bool:
        return METRICS[self.metric](as_choice(answer, choices), golds) > self.above


def judge(reply: str, golds: Sequence[str], choices: Sequence[str], correct: Correctness) -> Verdict:
    """Which of the table's rows a reply falls under. Only "Yes, I know" and "No, I don't know" are replies; case, an
    apostrophe's form and what stands between "know" and the answer do not matter."""
    if _NO.match(reply):
        return "no"
    match = _YES.match(reply)
    if not match:
        return "neither"
    return "right" if correct(read_reply(reply[match.end() :]).answer, golds, choices) else "wrong"


def reward(verdict: Verdict, acc_rate: float) -> float:
    """The table: Yes and right 2 acc - 1; Yes and wrong -1; No 1 - 2 acc. Anything else gets the lowest reward, -1."""
    if verdict == "right":
        return 2 * acc_rate - 1
    return 1 - 2 * acc_rate if verdict == "no" else -1.0
