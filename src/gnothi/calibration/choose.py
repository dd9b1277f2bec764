"""From scores with outcomes to a threshold: by what it is worth, with a guarantee, or both; and to probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gnothi.calibration.comparisons import Compared, alone, leads
from gnothi.calibration.comparisons import effect_of as compared
from gnothi.calibration.stopping import Margins, Paths, StoppingEffect, effect_of, effect_of_all, margins
from gnothi.errors import InvalidInput, counted
from gnothi.signals.stopping import Stopping
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.frontier import at, crossvalidate, frontier, oracle
from gnothi.stats.guarantee import EPSILON, Guarantee, guaranteed_threshold, set_aside
from gnothi.stats.intervals import Interval
from gnothi.stats.probabilities import FOLDS, Isotonic, Platt, crossfit, fit_isotonic, fit_platt
from gnothi.stats.reliability import Bin, ece, ece_interval, reliability

FEWEST = 20
TOLERATED = 0.005
"""So much less may a gate that stops drawing early be worth, in right answers, than one that draws all."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Scores (higher: less certain), and the quality without and with retrieval, one entry per question, shape (n,).

    ``always`` is None where nobody retrieved: then only a guarantee can be given. ``paths``: the scores of fewer samples, where
    a rule is to be chosen that stops drawing them early; ``compared``: the scores of
    comparisons, for theirs."""

    scores: Floats
    never: Floats
    always: Floats | None
    paths: Paths | None = None
    compared: Compared | None = None

    @property
    def wrong(self) -> Mask:
        return self.never < 1


@dataclass(frozen=True, slots=True)
class Worth:
    """What choosing a threshold by expected utility is worth, on questions that it was not chosen on. ``best``: what is worth
    most there; where the gate gains nothing, always or never to retrieve."""

    best: Literal["gate", "always", "never"]
    price: float
    accuracy: float
    interval: Interval | None
    retrieval_rate: float
    never: float
    always: float
    oracle: float


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Two curves from score to P(wrong from memory), each with its error on questions that it was not fitted on."""

    platt: Platt
    isotonic: Isotonic
    platt_ece: float
    platt_ece_interval: Interval | None
    isotonic_ece: float
    isotonic_ece_interval: Interval | None
    platt_bins: tuple[Bin, ...]
    isotonic_bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """``threshold`` may be -infinity (always retrieve). The rest is what it was chosen by, and what it does on the sample.

    ``stopping`` is the rule by which samples are drawn until the side of the threshold is decided, if there is one, ``effect``
    what it does to gates (without a rule, what drawing all does) and ``effect_compared`` to comparisons, if there are any;
    ``scores`` are those that decide, shape (n,): with a rule those of the samples that were drawn."""

    threshold: float
    n: int
    wrong: int
    trusted: int
    auroc: float | None
    auroc_interval: Interval | None
    guarantee: Guarantee | None
    worth: Worth | None
    probabilities: Probabilities | None
    scores: Floats
    stopping: Stopping | None = None
    effect: StoppingEffect | None = None
    effect_compared: StoppingEffect | None = None


def choose(
    sample: Sample, target_error: float | None = None, price: float | None = None, epsilon: float = EPSILON, seed: int = 0
) -> Chosen:
    """The threshold of highest expected accuracy - ``price`` x retrievals (0 unless given), of highest coverage under the
    guarantee of ``target_error``, or with both the most useful one of those that the guarantee holds for.

    Where always (or never) retrieving is worth more than the gate on questions that its threshold was not chosen on, the
    threshold is one that always (or never) retrieves. With ``paths`` a rule for stopping early is chosen, too, and left out
    where it saves nothing, or is worth less; with ``compared`` one for comparisons. Raises PromiseRefused where the guarantee
    cannot be given, InvalidInput for too few questions, where nothing is right, or without retrieving answers where a price was
    given."""
    chosen = _placed(sample, target_error, price, epsilon, seed)
    if sample.paths is not None and chosen.effect is None and np.isfinite(chosen.threshold):
        chosen = replace(chosen, effect=effect_of_all(sample.paths, chosen.threshold))
    if (made := sample.compared) is None:
        return chosen
    searched = chosen.scores > chosen.threshold
    steps, few = leads(made.together, searched), alone(made.together.counts, made.alone, made.wrong)
    if not steps and not few:
        return chosen
    rule = replace(chosen.stopping or Stopping(), leads=steps, alone=few)
    return replace(chosen, stopping=rule, effect_compared=compared(made.together.of(searched), steps) if steps else None)


def _placed(sample: Sample, target_error: float | None, price: float | None, epsilon: float, seed: int) -> Chosen:
    if sample.paths is None:
        return _choose(sample, target_error, price, epsilon, seed)
    if target_error is not None:
        # What is promised is tested on questions that have no part in the rule, and for one rule alone.
        aside = set_aside(len(sample.scores), seed)
        rule = margins(sample.paths.of(aside), _expected(sample.scores[aside], sample.wrong[aside], target_error))
        if rule is None:
            return _choose(sample, target_error, price, epsilon, seed)
        effective = replace(sample, scores=sample.paths.highest(rule.effective(sample.paths.scores[:, 0])))
        chosen = _choose(effective, target_error, price, epsilon, seed)
        return _stopping(sample, sample.paths, rule, chosen) if np.isfinite(chosen.threshold) else chosen
    whole = _choose(sample, target_error, price, epsilon, seed)
    rule = margins(sample.paths, whole.threshold) if whole.worth is not None and whole.worth.best == "gate" else None
    if rule is None or _lost(sample, sample.paths, rule, whole.threshold, price or 0.0) > TOLERATED:
        return whole
    return _stopping(sample, sample.paths, rule, whole)


def _stopping(sample: Sample, paths: Paths, rule: Margins, chosen: Chosen) -> Chosen:
    """With the rule at the threshold chosen, and what is said of scores said of those that the rule comes to."""
    _, scores = rule.stopped(paths.scores[:, 0], chosen.threshold)
    stopped = replace(sample, scores=paths.highest(scores))
    return replace(
        chosen,
        trusted=int((stopped.scores <= chosen.threshold).sum()),
        scores=stopped.scores,
        stopping=rule.at(chosen.threshold, paths.counts),
        effect=effect_of(paths, rule, chosen.threshold),
        auroc=auroc(stopped.scores, stopped.wrong),
        auroc_interval=auroc_interval(stopped.scores, stopped.wrong),
        probabilities=_probabilities(stopped),
    )


def _lost(sample: Sample, paths: Paths, rule: Margins, threshold: float, price: float) -> float:
    """How much less right answers, retrievals paid, a gate at that threshold has by the rule than with all samples; the mean of
    both draws."""
    assert sample.always is not None
    gained, lost = sample.always - price - sample.never, []
    for draw in (0, 1):
        _, scores = rule.stopped(paths.scores[:, draw], threshold)
        by_rule, by_all = (paths.highest(values) > threshold for values in (scores, paths.scores[:, draw, -1]))
        lost.append((gained * by_all - gained * by_rule).mean())
    return float(np.mean(lost))


def _expected(scores: Floats, wrong: Mask, target_error: float) -> float:
    """About where a threshold will lie that keeps the promise: the highest with no larger an error on these questions, counting
    one wrong answer more (Laplace); without any the median."""
    order = np.argsort(scores, kind="stable")
    error = (np.cumsum(wrong[order]) + 1) / (np.arange(len(order)) + 3)
    few_wrong = np.flatnonzero((error <= target_error) & np.isfinite(scores[order]))
    return float(scores[order][few_wrong[-1]] if len(few_wrong) else np.median(scores))


def _choose(sample: Sample, target_error: float | None, price: float | None, epsilon: float, seed: int) -> Chosen:
    if len(sample.scores) < FEWEST:
        raise InvalidInput(
            f"cannot calibrate: got {counted(len(sample.scores), 'question')} with a score and a gold answer, expected at "
            f"least {FEWEST}, better a few hundred."
        )
    guarantee, worth = None, None
    if target_error is not None:
        guarantee = guaranteed_threshold(sample.scores, sample.wrong, target_error, epsilon, seed)
        threshold = guarantee.threshold
    if target_error is None or price is not None:
        if sample.always is None:
            raise InvalidInput("cannot weigh retrievals: got no answers with retrieval, expected them beside those without.")
        _check_hopeful(sample, sample.always)
        worth = _worth(sample, sample.always, price or 0.0)
        threshold = _most_useful(sample, sample.always, worth, guarantee)
    wrong = sample.wrong
    interval = auroc_interval(sample.scores, wrong)
    return Chosen(
        threshold=threshold,
        n=len(wrong),
        wrong=int(wrong.sum()),
        trusted=int((sample.scores <= threshold).sum()),
        auroc=auroc(sample.scores, wrong),
        auroc_interval=interval,
        guarantee=guarantee,
        worth=worth,
        probabilities=_probabilities(sample),
        scores=sample.scores,
    )


def _check_hopeful(sample: Sample, always: Floats) -> None:
    """Raises InvalidInput where nothing is right, so that every threshold comes to the same."""
    if sample.never.any() or always.any():
        return
    raise InvalidInput(
        f"nothing to choose by: of {len(always)} questions none is right, neither from memory nor with a search, so every "
        "threshold comes to the same. Nothing was written. Look at some answers (`gnothi report` with the folder of the run): "
        "does the search find what is asked for, does the model read it, and does the metric see it? (em wants just the "
        "right answer, <--metric accuracy> one that contains it.)"
    )


def _most_useful(sample: Sample, always: Floats, worth: Worth, guarantee: Guarantee | None) -> float:
    price = worth.price
    if guarantee is None:
        line = frontier(sample.scores, sample.never, always)
        ends = {"always": float(line.thresholds[0]), "never": float(line.thresholds[-1])}
        return ends.get(worth.best, line.best(price).threshold)

    def utility(threshold: float) -> float:
        retrieved, quality = at(threshold, sample.scores, sample.never, always)
        return float(quality.mean() - price * retrieved.mean())

    # Of equally useful ones the highest, which retrieves least.
    return max(guarantee.accepted, key=lambda threshold: (utility(threshold), threshold))


def _worth(sample: Sample, always: Floats, price: float) -> Worth:
    judged = crossvalidate(sample.scores, sample.never, always, price)
    accuracy, rate = float(judged.quality.mean()), float(judged.retrieved.mean())
    return Worth(
        best=_best(sample, always, price, accuracy - price * rate),
        price=price,
        accuracy=accuracy,
        interval=judged.interval,
        retrieval_rate=rate,
        never=float(sample.never.mean()),
        always=float(always.mean()),
        oracle=float(oracle(sample.never, always).mean()),
    )


def _best(sample: Sample, always: Floats, price: float, gate: float) -> Literal["gate", "always", "never"]:
    """A gate that is as good as an end is that end. Where memory is never right there is nothing to trust: a gate could only
    tell the questions that are wrong either way."""
    ends = float(always.mean()) - price, float(sample.never.mean())
    if not sample.wrong.all() and gate > max(ends) + 1e-12:
        return "gate"
    return "always" if ends[0] > ends[1] else "never"


# --- probabilities ---------------------------------------------------------------------------------------------------


def _probabilities(sample: Sample) -> Probabilities | None:
    """None where (almost) all answers are right or wrong. Scores that could not be measured have no probability."""
    finite = np.isfinite(sample.scores)
    scores, wrong = sample.scores[finite], sample.wrong[finite]
    if min(wrong.sum(), (~wrong).sum()) < 2 * FOLDS:
        return None
    platt, isotonic = crossfit(fit_platt, scores, wrong), crossfit(fit_isotonic, scores, wrong)
    return Probabilities(
        platt=fit_platt(scores, wrong),
        isotonic=fit_isotonic(scores, wrong),
        platt_ece=ece(platt, wrong) or 0.0,
        platt_ece_interval=ece_interval(platt, wrong),
        isotonic_ece=ece(isotonic, wrong) or 0.0,
        isotonic_ece_interval=ece_interval(isotonic, wrong),
        platt_bins=reliability(platt, wrong),
        isotonic_bins=reliability(isotonic, wrong),
    )
