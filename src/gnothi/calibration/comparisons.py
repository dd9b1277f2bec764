"""Rules for when to stop drawing samples of prompts that are compared, and of one that is compared with nothing.

A comparison stops where the least score is far enough below the next one. As for a gate, a stop is held against which prompt is
least in *another* whole draw, distances are found backwards from the last group at a price of a sample, and the price is one
with which comparisons come out otherwise hardly more often than with all samples (``calibration.stopping``).

A score that is compared with nothing only says how sure an answer is. So few samples do for it as tell wrong answers from right
ones hardly worse than the worse of two whole draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gnothi.calibration.stopping import ALLOWED, StoppingEffect, cheapest, farthest
from gnothi.signals.stopping import Lead
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.auroc import auroc


@dataclass(frozen=True, slots=True)
class Comparisons:
    """``least``: the number of the prompt with the least score, ``apart`` how far it lies below the next one, both of shape
    (comparisons, 2, groups): of the first ``counts`` samples of two draws. ``prompts`` and ``question``, shape (comparisons,):
    how many are compared, and the number of the question that it is about."""

    counts: tuple[int, ...]
    least: NDArray[np.int64]
    apart: Floats
    prompts: NDArray[np.int64]
    question: NDArray[np.int64]

    @classmethod
    def among(cls, counts: tuple[int, ...], scores: Sequence[Floats], question: Sequence[int]) -> Comparisons:
        """Of ``scores``, each of shape (prompts, 2, groups) of two prompts or more."""
        lowest = [np.sort(array, axis=0)[:2] for array in scores]
        with np.errstate(invalid="ignore"):
            apart = [np.nan_to_num(second - first, nan=-1.0, posinf=np.inf) for first, second in lowest]
        shape = (len(scores), 2, len(counts))
        least = np.array([array.argmin(axis=0) for array in scores]).reshape(shape)
        prompts, about = (np.array(array, dtype=np.int64) for array in ([*map(len, scores)], question))
        return cls(counts, least, np.array(apart).reshape(shape), prompts, about)

    def of(self, chosen: Mask) -> Comparisons:
        """About these questions, by number."""
        rows = chosen[self.question]
        parts = {name: getattr(self, name)[rows] for name in ("least", "apart", "prompts", "question")}
        return replace(self, **parts)


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparisons on the way to answers, and the scores of what is compared with nothing, shape (n, 2, groups), with whether
    the answers that they were said with are ``wrong``, shape (n,)."""

    together: Comparisons
    alone: Floats
    wrong: Mask


def leads(made: Comparisons, searched: Mask) -> tuple[Lead, ...]:
    """Steps with which the fewest samples are drawn while another prompt than in another draw is least hardly more often than
    with all (``ALLOWED``); none where nothing is saved so. They are fit on all questions and judged by those ``searched`` for,
    shape (questions,): what is known is compared easily, and not compared at all where a gate is shut."""
    if not len(made.of(searched).question):
        return ()
    best = cheapest(
        len(searched),
        lambda chosen, price: _distances(made.of(chosen), price),
        lambda chosen, distances: _effects(made.of(chosen & searched), distances),
    )
    steps = [] if best is None else [Lead(*lead) for lead in zip(made.counts, _distances(made, best), strict=False)]
    ended = next((place for place, step in enumerate(steps, start=1) if not step.apart), len(steps))
    steps = steps[:ended]
    while steps and np.isinf(steps[-1].apart):
        steps.pop()
    return tuple(steps)


def effect_of(made: Comparisons, steps: Sequence[Lead]) -> StoppingEffect:
    """What the steps come to."""
    infinite = (float("inf"),) * (len(made.counts) - 1 - len(steps))
    return StoppingEffect(*_effects(made, (*(step.apart for step in steps), *infinite)).mean(axis=1).tolist())


def alone(counts: Sequence[int], scores: Floats, wrong: Mask) -> tuple[int, ...]:
    """As few samples as tell ``wrong`` answers, shape (n,), as well as all do, by ``scores`` of shape
    (n, 2, groups); none where that takes all, or cannot be told."""
    aurocs = [[auroc(one, wrong) for one in draw] for draw in scores.transpose(1, 2, 0)]
    if any(one is None for draw in aurocs for one in draw):
        return ()
    told_apart = np.maximum(np.array(aurocs, dtype=np.float64), 0.5)  # below, it tells nothing either
    fine = np.flatnonzero(told_apart.mean(axis=0) >= told_apart[:, -1].min() - ALLOWED)
    few = int(fine[0])
    return (counts[few],) if few < len(counts) - 1 else ()


def _distances(made: Comparisons, price: float) -> tuple[float, ...]:
    """The best ones behind each group but the last at that price of a sample, backwards from the last."""
    other = made.least[:, ::-1, -1]
    cost, distances = (made.least[..., -1] != other).ravel().astype(np.float64), []
    prompts = np.repeat(made.prompts, 2)
    for place in reversed(range(len(made.counts) - 1)):
        here = (made.least[..., place] != other).ravel()
        going = cost + price * prompts * (made.counts[place + 1] - made.counts[place])
        apart = made.apart[..., place].ravel()
        distances.append(farthest(apart, going - here))
        cost = np.where(apart >= distances[-1], here, going)
    return tuple(distances[::-1])


def _effects(made: Comparisons, distances: Sequence[float]) -> Floats:
    """For each comparison the share of its samples drawn, and whether the prompt that is least by rule, and by all samples, is
    another than in another whole draw; means over which draw is the other one. Shape (3, comparisons)."""
    group = np.full(made.least.shape[:2], len(made.counts) - 1)
    for place in reversed(range(len(distances))):
        group[made.apart[..., place] >= distances[place]] = place
    other = made.least[:, ::-1, -1]
    least = np.take_along_axis(made.least, group[..., None], axis=2)[..., 0]
    share = np.array(made.counts)[group] / made.counts[-1]
    return np.array([one.mean(axis=1) for one in (share, least != other, made.least[..., -1] != other)])
