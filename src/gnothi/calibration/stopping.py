"""A rule for when a gate stops drawing samples, chosen with its threshold on questions whose samples were all drawn, twice.

Twenty samples are a draw, too: another twenty put some questions on the other side. So a stop is held against the side that
*another* whole draw is on, and not against what the same draw would have come to: where that is as much in doubt with all
samples as with a few, more are not worth their price. Which margins are best at a price of a sample, in decisions, is found
backwards from the last group (optimal stopping); of several prices that one is taken with which, on questions that margins were
not chosen on, the fewest samples are drawn and decisions differ from the other draw's hardly more often than with all samples.

Margins lie at fixed distances from the threshold. So for every question there is one number, ``effective``, which is at most
the threshold where and only where the rule trusts: thresholds are chosen and promised by it as by any other score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gnothi.signals.gate import decisive
from gnothi.signals.stopping import Step, Stopping
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.frontier import FOLDS, between

T = TypeVar("T")
PRICES = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
"""Of a sample, in decisions that differ from another draw's; the rule of none of them is to draw all."""
ALLOWED = 0.01
"""So many more of the questions may a rule decide otherwise than another draw does than all samples do; of fewer than a hundred
one question."""
_decisive = np.vectorize(decisive, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class Paths:
    """``scores``, shape (decisions, 2, groups): of the first ``counts`` samples of two draws; infinite where a gate fires
    whatever the score. ``question``, shape (decisions,): the number of the question that the decision is about."""

    counts: tuple[int, ...]
    scores: Floats
    question: NDArray[np.int64]

    def of(self, chosen: Mask) -> Paths:
        """Of these questions, by number."""
        rows = chosen[self.question]
        return replace(self, scores=self.scores[rows], question=self.question[rows])

    def highest(self, values: Floats) -> Floats:
        """Of ``values``, one for each decision, the highest of each question, shape (questions,)."""
        by_question = np.full(int(self.question.max()) + 1, -np.inf)
        np.maximum.at(by_question, self.question, values)
        return by_question


@dataclass(frozen=True, slots=True)
class Margins:
    """Behind each group but the last: what is added to its scores, and how far below (above) the threshold they have to be for
    the model to know (not to know). Infinite: never."""

    moved: tuple[float, ...]
    below: tuple[float, ...]
    above: tuple[float, ...]

    def at(self, threshold: float, counts: Sequence[int]) -> Stopping:
        """The rule at that threshold; without steps behind which nothing stops."""
        # Scores have few digits: a billionth lets none pass that is not equal to a margin but for rounding.
        hair = 1e-9 * max(1.0, abs(threshold))
        steps = [
            Step(count, min(threshold, threshold - below + hair), threshold + above + hair * (above > 0), moved)
            for count, moved, below, above in zip(counts, self.moved, self.below, self.above, strict=False)
        ]
        while steps and math.isinf(steps[-1].known) and math.isinf(steps[-1].searched):
            steps.pop()
        return Stopping(tuple(steps))

    def effective(self, scores: Floats) -> Floats:
        """Of ``scores``, shape (m, groups), the lowest thresholds at which the rule trusts, shape (m,)."""
        thresholds = scores[:, -1]
        for group in reversed(range(len(self.moved))):
            moved = _moved(scores[:, group], self.moved[group])
            with np.errstate(invalid="ignore"):
                low, high = moved - self.above[group], moved + self.below[group]
            # An infinite score is above every margin, unless that is infinite: then more are drawn.
            low = np.where(np.isnan(low), -np.inf, low)
            thresholds = np.minimum(high, np.maximum(low, thresholds))
        return thresholds

    def stopped(self, scores: Floats, threshold: float) -> tuple[NDArray[np.int64], Floats]:
        """Behind which group drawing stops at that threshold, and the score there, each of shape (m,)."""
        group, score = np.full(len(scores), len(self.moved)), scores[:, -1].copy()
        for place in reversed(range(len(self.moved))):
            moved = _moved(scores[:, place], self.moved[place])
            ends = (moved <= threshold - self.below[place]) | (moved > threshold + self.above[place])
            group[ends], score[ends] = place, moved[ends]
        return group, score


def _moved(scores: Floats, by: float) -> Floats:
    return _decisive(scores + by) if len(scores) else scores


@dataclass(frozen=True, slots=True)
class StoppingEffect:
    """What a rule does on the questions that it was chosen on. ``samples``: share of all that are drawn. ``differ``: share of
    the questions that another whole draw decides otherwise; ``all_differ``: with all samples."""

    samples: float
    differ: float
    all_differ: float


def margins(paths: Paths, threshold: float) -> Margins | None:
    """Those with which the fewest samples are drawn while decisions differ from another draw's, on questions that the margins
    were not chosen on, hardly more often than with all (``ALLOWED``); of nearly equal ones those that differ least. None where
    nothing is saved so, or one side of the threshold is empty."""
    best = cheapest(
        int(paths.question.max()) + 1,
        lambda chosen, price: _margins(paths.of(chosen), threshold, price),
        lambda chosen, rule: _decided(paths.of(chosen), rule, threshold),
    )
    rule = None if best is None else _margins(paths, threshold, best)
    return rule if rule is not None and rule.at(threshold, paths.counts).steps else None


def cheapest(questions: int, fit: Callable[[Mask, float], T | None], judge: Callable[[Mask, T], Floats]) -> float | None:
    """The price of a sample with whose rules the fewest are drawn while what is decided is, on questions that they were not fit
    on, hardly more often than with all samples otherwise than in another draw; of nearly equal ones that which differs least.
    None where nothing is saved so. ``fit`` has the questions chosen and a price, and may find no rule; ``judge`` has others and
    the rule: shares of samples, and of decisions that differ by rule and with all, shape (3, decisions)."""
    fold = np.random.default_rng(0).permutation(questions) % FOLDS
    best, least = None, 1.0
    for price in PRICES:
        effects = []
        for held_out in range(FOLDS):
            rule = fit(fold != held_out, price)
            if rule is None:
                return None
            effects.append(judge(fold == held_out, rule))
        drawn, differ, all_differ = np.concatenate(effects, axis=1)
        excess = float((differ - all_differ).mean())
        if drawn.mean() < 1 and excess <= max(ALLOWED, 1 / drawn.size) and drawn.mean() + excess < least:
            best, least = price, float(drawn.mean()) + excess
    return best


def effect_of(paths: Paths, rule: Margins, threshold: float) -> StoppingEffect:
    """What the rule comes to at that threshold."""
    return StoppingEffect(*_decided(paths, rule, threshold).mean(axis=1).tolist())


def effect_of_all(paths: Paths, threshold: float) -> StoppingEffect:
    """Where all samples are drawn."""
    first, second = (paths.highest(paths.scores[:, draw, -1]) > threshold for draw in (0, 1))
    differ = float((first != second)[np.unique(paths.question)].mean())
    return StoppingEffect(1.0, differ, differ)


def _decided(paths: Paths, rule: Margins, threshold: float) -> Floats:
    """For each question that ``paths`` has: the share of its samples drawn, and whether the decision by rule, and by all
    samples, differs from another whole draw's; means over which draw is the other one. Shape (3, questions)."""
    shares, differ, all_differ = [], [], []
    last = paths.highest(paths.scores[:, 0, -1]) > threshold, paths.highest(paths.scores[:, 1, -1]) > threshold
    has = np.isin(np.arange(len(last[0])), paths.question)
    for draw in (0, 1):
        scores = paths.scores[:, draw]
        group, score = rule.stopped(scores, threshold)
        share = np.array(paths.counts)[group] / paths.counts[-1]
        shares.append(np.bincount(paths.question, share) / np.maximum(np.bincount(paths.question), 1))
        differ.append((paths.highest(score) > threshold) != last[1 - draw])
        all_differ.append(last[draw] != last[1 - draw])
    return np.array([np.mean(one, axis=0) for one in (shares, differ, all_differ)])[:, has]


def _margins(paths: Paths, threshold: float, price: float) -> Margins | None:
    """The best ones at that price of a sample, by dynamic programming backwards from the last group."""
    whole = paths.scores[..., -1]
    other = (whole[:, ::-1] > threshold).ravel()  # the side that the other draw is on
    if other.all() or not other.any():
        return None
    cost = ((whole > threshold).ravel() != other).astype(np.float64)
    moved, below, above = [], [], []
    for place in reversed(range(len(paths.counts) - 1)):
        raw = paths.scores[..., place].ravel()
        cuts = between(raw)
        known = np.searchsorted(np.sort(raw), cuts, side="right")
        cut = cuts[int(np.argmin(np.abs(known - (whole <= threshold).sum())))]
        by = decisive(threshold - cut) if np.isfinite(cut) else 0.0
        scores = _moved(raw, by)
        going = cost + price * (paths.counts[place + 1] - paths.counts[place])
        low = farthest(threshold - scores, going - other)
        high = farthest(scores - threshold, going - ~other, above=True)
        cost = np.where(scores <= threshold - low, other, np.where(scores > threshold + high, ~other, going))
        moved.append(by)
        below.append(low)
        above.append(high)
    return Margins(tuple(moved[::-1]), tuple(below[::-1]), tuple(above[::-1]))


def farthest(distance: Floats, gain: Floats, above: bool = False) -> float:
    """The distance (from a threshold, or another score) from which on stopping gains most in all; infinite where it gains
    nothing. Negative ones are on the other side, and ``above`` those at the threshold itself, too."""
    side = distance > 0 if above else distance >= 0
    order = np.argsort(-distance[side], kind="stable")
    far, total = distance[side][order], np.cumsum(gain[side][order])
    ends = np.flatnonzero(np.append(far[1:] < far[:-1], True)) if len(far) else np.zeros(0, np.int64)
    if not len(ends) or total[ends].max() <= 0:
        return float("inf")
    best = ends[int(np.argmax(total[ends]))]
    if best + 1 == len(far):
        return 0.0
    here, nearer = float(far[best]), float(far[best + 1])
    return nearer if math.isinf(here) else (here + nearer) / 2
