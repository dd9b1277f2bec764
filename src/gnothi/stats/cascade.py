"""Stage by stage, is it worth going on? Cheap knowledge first; evidence only where it pays, and not believed where it misled.

At each stage more is known of a question, and was paid for. At the last the second answer is there. The stages are learnt from
the last one backwards, as American options are priced (Longstaff and Schwartz 2001): at each, "the second answer" is the one
that going on would end with, found with regressions that were not fitted on that question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from gnothi.errors import InvalidInput
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.benefit import Benefit, Chances, fit_benefit
from gnothi.stats.guarantee import EPSILON, Guarantee, guaranteed_threshold
from gnothi.stats.probabilities import FOLDS, folds_of

Stage = tuple[str, Sequence[int], float]
"""Name, the columns of features that are known there for the first time, and what reaching it costs."""


@dataclass(frozen=True, slots=True)
class Look:
    """At something more before a decision: worth its price where the gain is above ``needed``. ``benefit`` is of the choice
    made with what is known now (the first answer) and of the one made after the look (the second), ``going`` of whether either
    goes on, which costs ``later`` right answers each time; None: that costs nothing."""

    benefit: Benefit
    needed: float
    going: Benefit | None = None
    later: float = 0.0

    def gain(self, known: Floats) -> Floats:
        """In right answers, what going on more often costs taken off; shape (n,)."""
        gain = self.benefit(known).gain
        return gain if self.going is None else gain - self.later * self.going(known).gain


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided once ``columns`` of the features are known: to go on where the gain is above ``needed``, in right answers
    a question. After the last step "to go on" means to take the second answer. Where ``look`` gains enough, the next step is
    reached first, which is ``optional`` then: it decides the same, with more known; else it is passed over."""

    name: str
    columns: tuple[int, ...]
    benefit: Benefit
    needed: float
    look: Look | None = None
    optional: bool = False

    def chances(self, features: Floats) -> Chances:
        return self.benefit(features[:, self.columns])

    def gain_of_look(self, features: Floats) -> Floats:
        """In right answers; minus infinity where there is none to take."""
        known = features[:, self.columns]
        return np.full(len(known), -np.inf) if self.look is None else self.look.gain(known)


@dataclass(frozen=True, slots=True)
class Decided:
    """Of each question, shape (n,): the ``last`` step that was reached, whether the ``second`` answer was taken, how likely the
    answer taken is ``right``, how likely the second one would have ``harmed``, as the last step reached has it, and whether
    an answer is ``given`` at all (else "not known"). ``reached`` says which steps were, shape (n, steps)."""

    last: np.ndarray[tuple[int], np.dtype[np.int_]]
    second: Mask
    right: Floats
    harmed: Floats
    given: Mask
    reached: np.ndarray[tuple[int, int], np.dtype[np.bool_]]


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

    def after(self, number: int) -> int:
        """The step that going on from one leads to; as many as there are steps: the second answer is taken."""
        later = range(number + 1, len(self.steps))
        return next((one for one in later if not self.steps[one].optional), len(self.steps))

    def on(self, number: int, gain: Floats, harmed: Floats) -> Mask:
        """Whether to go on from a step; from the last one, to take the second answer."""
        chooses = self.after(number) == len(self.steps)
        return (gain > self.steps[number].needed) & ((not chooses) | (harmed <= self.harm))

    def __call__(self, features: ArrayLike) -> Decided:
        """``features`` has shape (n, d); those of stages that are not reached are not looked at."""
        x = np.asarray(features, dtype=np.float64)
        at, last = np.zeros(len(x), dtype=np.int_), np.zeros(len(x), dtype=np.int_)
        second, right, harmed = np.zeros(len(x), dtype=bool), np.zeros(len(x)), np.zeros(len(x))
        reached = np.zeros((len(x), len(self.steps)), dtype=bool)
        for number, step in enumerate(self.steps):
            here = at == number
            known = x[here]
            chances = step.chances(known)
            on = self.on(number, chances.gain, chances.harmed)
            # Where it goes on all this is overwritten, but for the last step.
            last[here], second[here], harmed[here], reached[here, number] = number, on, chances.harmed, True
            right[here] = np.where(on, chances.second, chances.first)
            looks = np.zeros(len(known), dtype=bool) if step.look is None else step.gain_of_look(known) > step.look.needed
            at[here] = np.where(looks, number + 1, np.where(on, self.after(number), -1))
        return Decided(last, second, right, harmed, right >= self.sure_enough, reached)


def fit_cascade(
    features: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    stages: Sequence[Stage],
    wrong: float = 0.0,
    taking: float = 0.0,
    looks: Mapping[str, Sequence[Stage]] | None = None,
) -> Cascade:
    """``stages`` in order: name, which of ``features`` (shape (n, d)) are known there for the first time, and what reaching it
    costs, in right answers; the first is always reached. Those that cost nothing to reach are one with the stage before: to
    stop there would save nothing. ``first`` and ``second`` say whether either answer is right, (n,). ``taking`` is what the
    second answer costs after the last stage, where it was not there yet. ``looks``: by stage what may be looked at there before
    the decision, one after the other; stages after it do without, since not every question has it. One that was not worth
    its price on questions that it was not learnt on is left out.

    Raises InvalidInput without stages, and as ``fit_benefit``."""
    if not stages:
        raise InvalidInput("cannot learn a cascade: got no stages, expected one at least.")
    x, memory = np.asarray(features, dtype=np.float64), np.asarray(first, dtype=bool)
    outcome, later = np.asarray(second, dtype=bool), taking
    stages, optional = _merged(stages, looks or {})
    steps: list[Step] = []
    for number in reversed(range(len(stages))):
        name, _, cost = stages[number]
        columns = [column for _, known, _ in stages[: number + 1] for column in known]
        part = _Part(x, memory, outcome, later, wrong)
        if not number and not optional[number]:
            steps.insert(0, part.step(name, columns))
            break  # what it ends with is asked by nothing before it
        found, ends = part.learn(name, columns, optional[number])
        steps[:0] = found
        outcome, later = ends.right, cost + float(ends.on.mean()) * later + float(ends.looks.mean())
    return Cascade(tuple(steps), wrong)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Of each question, shape (n,): whether it ends with a right answer and goes ``on``, and what was paid for ``looks``."""

    right: Mask
    on: Mask
    looks: Floats


@dataclass(frozen=True, slots=True)
class _Part:
    """A stage with its looks. ``outcome``: whether going on from it ends with a right answer, which costs ``later``."""

    x: Floats
    memory: Mask
    outcome: Mask
    later: float
    wrong: float

    def step(self, name: str, columns: Sequence[int]) -> Step:
        columns = tuple(sorted(columns))
        return Step(name, columns, fit_benefit(self.x[:, columns], self.memory, self.outcome), self.later / (1 + self.wrong))

    def learn(self, name: str, columns: Sequence[int], looks: Sequence[Stage]) -> tuple[list[Step], _Ends]:
        step = self.step(name, columns)
        needed, known = step.needed, self.x[:, step.columns]
        on = _gain_of_others(known, self.memory, self.outcome) > needed
        plain = _Ends(np.where(on, self.outcome, self.memory), on, np.zeros(len(on)))
        if not looks:
            return [step], plain
        (title, more, price), *deeper = looks
        (first, *rest), seen = self.learn(title, [*columns, *more], deeper)
        # A look is worth what it changes: how often the answer is right, and how often going on has to be paid for.
        going = fit_benefit(known, on, seen.on) if self.later else None
        look = Look(
            fit_benefit(known, plain.right, seen.right), (price + float(seen.looks.mean())) / (1 + self.wrong), going, needed
        )
        gain = _gain_of_others(known, plain.right, seen.right)
        if self.later:
            gain = gain - needed * _gain_of_others(known, on, seen.on)
        asks = gain > look.needed
        if not _is_worth_it(seen, plain, asks, look.needed, needed):
            return [step], plain
        ends = _Ends(
            np.where(asks, seen.right, plain.right), np.where(asks, seen.on, on), np.where(asks, price + seen.looks, 0.0)
        )
        return [replace(step, look=look), replace(first, optional=True), *rest], ends


def _is_worth_it(seen: _Ends, plain: _Ends, asks: Mask, price: float, later: float) -> bool:
    """Whether what a look changed for the questions that took it, all prices taken off, is above its standard error: else it is
    left out, so that what decides stays small, and asks less of a model."""
    change = seen.right.astype(np.float64) - plain.right - later * (seen.on.astype(np.float64) - plain.on)
    net = change[asks] - price
    return float(net.sum()) > float(np.sqrt((net**2).sum()))


def _merged(stages: Sequence[Stage], looks: Mapping[str, Sequence[Stage]]) -> tuple[list[Stage], list[list[Stage]]]:
    """And what may be looked at in each."""
    found: list[Stage] = []
    optional: list[list[Stage]] = []
    for name, known, cost in stages:
        more = list(looks.get(name, ()))
        if found and cost <= 0:
            _, before, paid = found.pop()
            found.append((name, [*before, *known], paid))
            optional[-1] += more
        else:
            found.append((name, known, cost))
            optional.append(more)
    return found, optional


def _gain_of_others(x: Floats, first: Mask, second: Mask) -> Floats:
    """The gain of each question by what was learnt of the others."""
    fold, found = folds_of(first != second), np.empty(len(x))
    for held_out in range(FOLDS):
        test = fold == held_out
        found[test] = fit_benefit(x[~test], first[~test], second[~test])(x[test]).gain
    return found


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
    taken = decided.second
    if not taken.any():
        raise InvalidInput(
            f"cannot promise little harm: got {len(taken)} questions, in none of which evidence is taken; expected some. Lower "
            "the price of a search, or promise errors alone."
        )
    return decided.harmed[taken], (memory & ~evidence)[taken]
