"""Gates held against the truth: does the score tell the questions that the model would get wrong from memory?

A question takes as many decisions as a method reasons in steps, and it retrieves if one of them is above the threshold: so a
question's score is the highest of its decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gnothi import methods
from gnothi.calibration.baselines import closed_book
from gnothi.roles import AT_ONCE
from gnothi.runs.rows import Row
from gnothi.signals.replies import says_nothing
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.intervals import Interval
from gnothi.stats.probabilities import crossfit_probabilities
from gnothi.stats.reliability import ece

_DEGENERATE = 0.02
FEWEST_DECISIONS = 20
_LAST = {"familiarity": 1, AT_ONCE: 2}


@dataclass(frozen=True, slots=True)
class Truth:
    """Question id -> whether the closed-book answer is wrong. ``source`` is the method that says so, or ``familiarity``."""

    source: str
    metric: str
    wrong: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class GateSummary:
    """A method's gate over a run, held against the ``truth`` (a ``Truth.source``) where there is one.

    ``auroc``: is the score higher where the closed-book answer is wrong? ``ece``: of the score turned into a probability by
    isotonic regression on the other folds. ``firing_rate``: share of all decisions that were to retrieve. ``range``: the
    lowest and the highest score. ``auroc_by_accuracy``: where an answer counts as right when it contains a gold answer.
    """

    signal: str
    truth: str | None
    metric: str | None
    n: int
    wrong: int
    auroc: float | None
    interval: Interval | None
    ece: float | None
    decisions: int
    firing_rate: float
    thresholds: list[float]
    range: list[float] | None
    auroc_by_accuracy: float | None = None


def truth(by_method: Mapping[str, Sequence[Row]], metric: str = "em", trusting: Collection[str] = ()) -> Truth | None:
    """What a gate ought to know: where the method that stands for never retrieving is wrong (``baselines.never_of``). Where
    that answers at once, in the laboratory, from whether the model was shown the needed facts often (knows) or never (does
    not), seldom seen ones left out."""
    levels = {row.question_id: row.metadata.get("familiarity") for rows in by_method.values() for row in rows}
    never_shown = {question: level == "never" for question, level in levels.items() if level in ("often", "never")}
    answers = [_answers(name, by_method, metric) for name in closed_book(by_method, trusting)]
    judges = sorted([*answers, Truth("familiarity", metric, never_shown)], key=lambda judge: _LAST.get(judge.source, 0))
    return next((judge for judge in judges if judge.wrong), None)


def _answers(name: str, by_method: Mapping[str, Sequence[Row]], metric: str) -> Truth:
    wrong = {row.question_id: row.metrics[metric] < 1 for row in by_method.get(name, ()) if metric in row.metrics}
    return Truth(name, metric, wrong)


def question_scores(rows: Sequence[Row]) -> dict[str, float]:
    """Question id -> highest score of its retrieval decisions; infinity where a signal found nothing to measure."""
    scores: dict[str, float] = {}
    for row in rows:
        measured = [decision["score"] for decision in row.gate() if decision["signal"]] if not row.failed else []
        if measured:
            scores[row.question_id] = max(float("inf") if score is None else score for score in measured)
    return scores


def gauged_scores(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Of a method that measured signals beside its answers: signal -> question id -> score. Infinite, as a gate has it, where
    nothing could be measured, and where the answer is blank or says that the model does not know."""
    scores: dict[str, dict[str, float]] = {}
    for row in rows:
        silent = not row.failed and says_nothing(row.rationale or row.answer or "")
        for name, gauge in row.signals.items() if not row.failed else ():
            score = float("inf") if silent or gauge["score"] is None else gauge["score"]
            scores.setdefault(name, {})[row.question_id] = score
    return scores


def paired_scores(rows: Sequence[Row], known: Truth | None) -> tuple[list[float], list[bool]]:
    """Scores and whether the closed-book answer was wrong, for the questions that have both."""
    both = [
        (score, known.wrong[question]) for question, score in question_scores(rows).items() if known and question in known.wrong
    ]
    return [score for score, _ in both], [wrong for _, wrong in both]


def gate_summary(rows: Sequence[Row], known: Truth | None) -> GateSummary | None:
    """None for a method without a gate."""
    decisions = [decision for row in rows if not row.failed for decision in row.gate() if decision["signal"]]
    if not decisions:
        return None
    measured = [decision["score"] for decision in decisions if decision["score"] is not None]
    scores, wrong = paired_scores(rows, known)
    predicted = crossfit_probabilities(scores, wrong)
    return GateSummary(
        signal=", ".join(sorted({decision["signal"] for decision in decisions})),
        truth=known.source if known else None,
        metric=known.metric if known else None,
        n=len(scores),
        wrong=sum(wrong),
        auroc=auroc(scores, wrong),
        interval=auroc_interval(scores, wrong),
        ece=None if predicted is None else ece(predicted, wrong),
        decisions=len(decisions),
        firing_rate=sum(decision["verdict"] == "retrieve" for decision in decisions) / len(decisions),
        thresholds=sorted({decision["threshold"] for decision in decisions if decision["threshold"] is not None}),
        range=[min(measured), max(measured)] if measured else None,
    )


def one_sided(rate: float) -> Literal["never", "always"] | None:
    """How a gate fires that (almost) always decides alike, by the share of its decisions in which it fires."""
    if _DEGENERATE < rate < 1 - _DEGENERATE:
        return None
    return "always" if rate > 0.5 else "never"


def degenerate(gate: GateSummary | None, method: str = "") -> str | None:
    """A warning where a gate with a threshold (almost) always or never fires: it decides nothing, it only costs.

    It says where the scores lie, and what to do; ``method`` is the one to calibrate."""
    if gate is None or gate.decisions < FEWEST_DECISIONS or not gate.thresholds:
        return None
    rate = gate.firing_rate
    which = one_sided(rate)
    if which is None:
        return None
    limits = ", ".join(f"{threshold:g}" for threshold in gate.thresholds)
    choose = (
        f". Where a calibration of this model chose that, {which} searching was best there; else choose one with "
        f"`gnothi calibrate DATASET --method {method or 'METHOD'} --out FILE`"
    )
    if method in methods.names() and methods.spec(method).gate is None:
        choose = f": `gnothi list methods {method}` tells which settings it follows from"
    return (
        f"the gate ({gate.signal}, threshold {limits}) retrieved in {rate:.1%} of {gate.decisions} decisions: it "
        f"(almost) {which} fires.{advice(gate.range, gate.thresholds)} Thresholds do not transfer between "
        f"models{choose}, and see what others would do with `gnothi calibrate --replay RUN`."
    )


def advice(score_range: Sequence[float] | None, thresholds: Sequence[float], fires_above: bool = True) -> str:
    """Where the scores lie and on which side of the thresholds, as a sentence; a signal ``fires_above`` its threshold."""
    if score_range is None:
        return " No score could be measured."
    low, high = score_range
    side = ""
    if thresholds and low > max(thresholds):
        side = ", all above it" if fires_above else ", all above it, which is the sure side"
    elif thresholds and high <= min(thresholds):
        side = ", none above it" if fires_above else ", none above it, which is the unsure side"
    return f" The scores lie between {low:.4g} and {high:.4g}{side}."
