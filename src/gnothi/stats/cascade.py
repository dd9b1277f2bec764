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

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.benefit import Benefit, Chances, fit_benefit
from gnothi.stats.crossfit import FOLDS, folds_of

Stage = tuple[str, Sequence[int], float]
"""Name, the columns of features that are known there for the first time, and what reaching it costs."""


@dataclass(frozen=True, slots=True)
class Check:
    """Of the choice made with what is known now (the first answer, for ``benefit``) and the one made with what the last step
    knows (the second): it is worth knowing that where the gain is above ``needed``."""

    benefit: Benefit
    needed: float


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided once ``columns`` of the features are known: to go on where the gain is above ``needed``, in right answers
    a question. After the last step "to go on" means to take the second answer; so it does at one with a ``check``, where that
    says that the last step is not worth its price."""

    name: str
    columns: tuple[int, ...]
    benefit: Benefit
    needed: float
    check: Check | None = None

    def chances(self, features: Floats) -> Chances:
        return self.benefit(features[:, self.columns])

    def gain_of_check(self, features: Floats) -> Floats:
        """In right answers; minus infinity where there is none to make."""
        known = features[:, self.columns]
        return np.full(len(known), -np.inf) if self.check is None else self.check.benefit(known).gain


@dataclass(frozen=True, slots=True)
class Decided:
    """Of each question, shape (n,): the ``last`` step that was reached, whether the ``second`` answer was taken, how likely the
    answer taken is ``right``, how likely the second one would have ``harmed``, as the last step reached has it, and whether
    an answer is ``given`` at all (else "not known")."""

    last: np.ndarray[tuple[int], np.dtype[np.int_]]
    second: Mask
    right: Floats
    harmed: Floats
    given: Mask


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
        chooses = number == len(self.steps) - 1 or self.steps[number].check is not None
        return (gain > self.steps[number].needed) & ((not chooses) | (harmed <= self.harm))

    def __call__(self, features: ArrayLike) -> Decided:
        """``features`` has shape (n, d); those of stages that are not reached are not looked at."""
        x = np.asarray(features, dtype=np.float64)
        going, second = np.ones(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
        last, right, harmed = np.zeros(len(x), dtype=np.int_), np.zeros(len(x)), np.zeros(len(x))
        for number, step in enumerate(self.steps):
            known = x[going]
            chances = step.chances(known)
            on = self.on(number, chances.gain, chances.harmed)
            # Where it goes on all this is overwritten, but for the last step.
            last[going], second[going], harmed[going] = number, on, chances.harmed
            right[going] = np.where(on, chances.second, chances.first)
            going[going] = on if step.check is None else step.gain_of_check(known) > step.check.needed
        return Decided(last, second, right, harmed, right >= self.sure_enough)


def fit_cascade(
    features: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    stages: Sequence[Stage],
    wrong: float = 0.0,
    taking: float = 0.0,
    check: Stage | None = None,
) -> Cascade:
    """``stages`` in order: name, which of ``features`` (shape (n, d)) are known there for the first time, and what reaching it
    costs, in right answers; the first is always reached. Those that cost nothing to reach are one with the stage before: to
    stop there would save nothing. ``first`` and ``second`` say whether either answer is right, (n,). ``taking`` is what the
    second answer costs after the last stage, where it was not there yet. ``check`` is a stage after the last that may be left
    out: with or without it, either answer can be taken.

    Raises InvalidInput without stages, and as ``fit_benefit``."""
    if not stages:
        raise InvalidInput("cannot learn a cascade: got no stages, expected one at least.")
    x, memory = np.asarray(features, dtype=np.float64), np.asarray(first, dtype=bool)
    outcome, later = np.asarray(second, dtype=bool), taking
    stages = _merged(stages)
    steps: list[Step] = []
    for number in reversed(range(len(stages))):
        columns = tuple(sorted(column for _, known, _ in stages[: number + 1] for column in known))
        needed = later / (1 + wrong)
        known = x[:, columns]
        step = Step(stages[number][0], columns, fit_benefit(known, memory, outcome), needed)
        on = _gain_of_others(known, memory, outcome) > needed if number or check else np.ones(len(x), dtype=bool)
        chosen, going_on = np.where(on, outcome, memory), later
        if check is not None and not steps:
            name, more, price = check
            every = tuple(sorted((*columns, *more)))
            last = Step(name, every, fit_benefit(x[:, every], memory, outcome), needed)
            checked = np.where(_gain_of_others(x[:, every], memory, outcome) > needed, outcome, memory)
            worth = Check(fit_benefit(known, chosen, checked), price / (1 + wrong))
            asked = _gain_of_others(known, chosen, checked) > worth.needed
            steps.append(last)
            step = replace(step, check=worth)
            chosen = np.where(asked, checked, chosen)
            going_on, on = price, asked
        steps.append(step)
        outcome, later = chosen, stages[number][2] + float(on.mean()) * going_on
    return Cascade(tuple(reversed(steps)), wrong)


def _merged(stages: Sequence[Stage]) -> list[Stage]:
    found: list[Stage] = []
    for name, known, cost in stages:
        if found and cost <= 0:
            _, before, paid = found.pop()
            found.append((name, [*before, *known], paid))
        else:
            found.append((name, known, cost))
    return found


def _gain_of_others(x: Floats, first: Mask, second: Mask) -> Floats:
    """The gain of each question by what was learnt of the others."""
    fold, found = folds_of(first != second), np.empty(len(x))
    for held_out in range(FOLDS):
        test = fold == held_out
        found[test] = fit_benefit(x[~test], first[~test], second[~test])(x[test]).gain
    return found
