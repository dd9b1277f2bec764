"""Stage by stage, is it worth going on? Cheap knowledge first; evidence only where it pays, and not believed where it misled.

At each stage more is known of a question, and was paid for. At the last the second answer is there. The stages are learnt from
the last one backwards, as American options are priced (Longstaff and Schwartz 2001): at each, "the second answer" is the one
that going on would end with, found with regressions that were not fitted on that question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput, counted
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.benefit import Benefit, Chances, fit_benefit
from gnothi.stats.guarantee import EPSILON, Guarantee, guaranteed_threshold
from gnothi.stats.probabilities import FOLDS, folds_of

Stage = tuple[str, Sequence[int], float]
"""Name, the columns of features that are known there for the first time, and what reaching it costs."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided once ``columns`` of the features are known: to go on where the gain is above ``needed``, in right answers
    a question. After the last step "to go on" means to take the second answer."""

    name: str
    columns: tuple[int, ...]
    benefit: Benefit
    needed: float

    def chances(self, features: Floats) -> Chances:
        return self.benefit(features[:, self.columns])


@dataclass(frozen=True, slots=True)
class Decided:
    """Of each question, shape (n,): the ``last`` step that was reached, whether the ``second`` answer was taken, how likely the
    answer taken is ``right``, how likely the second one would have ``harmed``, as the last step reached has it, and whether
    the question is ``answered`` at all (else "not known")."""

    last: np.ndarray[tuple[int], np.dtype[np.int_]]
    second: Mask
    right: Floats
    harmed: Floats
    answered: Mask


@dataclass(frozen=True, slots=True)
class Cascade:
    """``wrong``: what a wrong answer costs, where a right one earns 1 and "not known" nothing. The second answer is not taken
    where it harms with more than ``harm``, and an answer not given where it is wrong with more than ``doubt``; None: where that
    costs more than it earns."""

    steps: tuple[Step, ...]
    wrong: float = 0.0
    harm: float = np.inf
    doubt: float | None = None

    @property
    def sure_enough(self) -> float:
        """How likely an answer has to be right to be given."""
        return self.wrong / (1 + self.wrong) if self.doubt is None else 1 - self.doubt

    def on(self, number: int, gain: Floats, harmed: Floats) -> Mask:
        """Whether to go on from a step; from the last one, to take the second answer."""
        chooses = number == len(self.steps) - 1
        return (gain > self.steps[number].needed) & ((not chooses) | (harmed <= self.harm))

    def __call__(self, features: ArrayLike) -> Decided:
        """``features`` has shape (n, d); those of stages that are not reached are not looked at."""
        x = np.asarray(features, dtype=np.float64)
        here, last = np.ones(len(x), dtype=bool), np.zeros(len(x), dtype=np.int_)
        second, right, harmed = np.zeros(len(x), dtype=bool), np.zeros(len(x)), np.zeros(len(x))
        for number, step in enumerate(self.steps):
            chances = step.chances(x[here])
            on = self.on(number, chances.gain, chances.harmed)
            # Where it goes on all this is overwritten, but for the last step.
            last[here], second[here], harmed[here] = number, on, chances.harmed
            right[here] = np.where(on, chances.second, chances.first)
            here = here & second
        return Decided(last, second, right, harmed, right >= self.sure_enough)


def fit_cascade(
    features: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    stages: Sequence[Stage],
    wrong: float = 0.0,
    taking: float = 0.0,
) -> Cascade:
    """``stages`` in order: name, which of ``features`` (shape (n, d)) are known there for the first time, and what reaching it
    costs, in right answers; the first is always reached. Those that cost nothing to reach are one with the stage before: to
    stop there would save nothing. ``first`` and ``second`` say whether either answer is right, (n,). ``taking`` is what the
    second answer costs after the last stage, where it was not there yet.

    Raises InvalidInput without stages, and as ``fit_benefit``."""
    if not stages:
        raise InvalidInput("cannot learn a cascade: got no stages, expected at least one.")
    x, memory = np.asarray(features, dtype=np.float64), np.asarray(first, dtype=bool)
    outcome, later = np.asarray(second, dtype=bool), taking
    stages = _merged(stages)
    steps: list[Step] = []
    for number in reversed(range(len(stages))):
        name, _, cost = stages[number]
        columns = tuple(sorted(column for _, known, _ in stages[: number + 1] for column in known))
        known, needed = x[:, columns], later / (1 + wrong)
        steps.insert(0, Step(name, columns, fit_benefit(known, memory, outcome), needed))
        if number:  # what the first one ends with is asked by nothing before it
            on = _gain_of_others(known, memory, outcome) > needed
            outcome, later = np.where(on, outcome, memory), cost + float(on.mean()) * later
    return Cascade(tuple(steps), wrong)


def _merged(stages: Sequence[Stage]) -> list[Stage]:
    merged: list[Stage] = []
    for name, known, cost in stages:
        if merged and cost <= 0:
            _, before, paid = merged.pop()
            merged.append((name, [*before, *known], paid))
        else:
            merged.append((name, known, cost))
    return merged


def _gain_of_others(x: Floats, first: Mask, second: Mask) -> Floats:
    """The gain of each question by what was learnt of the others."""
    fold, gain = folds_of(first != second), np.empty(len(x))
    for held_out in range(FOLDS):
        test = fold == held_out
        gain[test] = fit_benefit(x[~test], first[~test], second[~test])(x[test]).gain
    return gain


# Two promises of a cascade: few errors among the answers given, and little harm by what it searched for. Each by the test of
# ``guarantee``, on questions of which the cascade learnt nothing. *Harm* is an answer from memory that was right, and one from
# evidence that was taken instead and is wrong: a share of what was taken from evidence. The first half of the questions says
# how likely a harm may look for evidence to be taken; with that, the second half says how doubtful an answer may look to be
# given. Either promise may fail with half of ε, so both hold with 1 - ε.


@dataclass(frozen=True, slots=True)
class Promised:
    """The ``cascade`` with the limits of its promises; None for one that was not asked for."""

    cascade: Cascade
    harm: Guarantee | None
    errors: Guarantee | None


def promise(
    cascade: Cascade,
    features: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    target_error: float | None = None,
    target_harm: float | None = None,
    epsilon: float = EPSILON,
    seed: int = 0,
) -> Promised:
    """Of ``features``, shape (n, d), and whether either answer is right, (n,). The whole of the questions and of ``epsilon`` is
    spent on a promise that stands alone. Raises PromiseRefused, which says what is lacking, where it cannot be made;
    InvalidInput where evidence is never taken, so that no harm can be tested."""
    x, memory, evidence = np.asarray(features, dtype=np.float64), np.asarray(first, bool), np.asarray(second, bool)
    both = target_error is not None and target_harm is not None
    earlier = np.random.default_rng((seed, len(x))).permutation(len(x)) < (len(x) // 2 if both else len(x))
    rest, share = ~earlier if both else earlier, epsilon / 2 if both else epsilon
    harm = errors = None
    if target_harm is not None:
        harmed = _harm(cascade(x[earlier]), memory[earlier], evidence[earlier])
        harm = guaranteed_threshold(*harmed, target_harm, share, seed)
        cascade = replace(cascade, harm=harm.threshold)
    if target_error is not None:
        decided = cascade(x[rest])
        wrong = ~np.where(decided.second, evidence[rest], memory[rest])
        errors = guaranteed_threshold(1 - decided.right, wrong, target_error, share, seed)
        cascade = replace(cascade, doubt=errors.threshold)
    return Promised(cascade, harm, errors)


def _harm(decided: Decided, memory: Mask, evidence: Mask) -> tuple[Floats, Mask]:
    second = decided.second
    if not second.any():
        raise InvalidInput(
            f"cannot guarantee little harm: got {counted(len(second), 'question')} and no answer from evidence, expected some. "
            "Lower the cost of a search, or ask only for the guarantee of errors."
        )
    return decided.harmed[second], (memory & ~evidence)[second]
