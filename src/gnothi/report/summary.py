"""What a run comes to: per method quality, cost and gate with intervals; methods beside each other; what to be warned of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnothi.calibration.verdicts import GateSummary, Truth, gate_summary, paired_scores, truth
from gnothi.metrics import METRICS, f1
from gnothi.report.breakdown import Cell, Decisions, abstained, by_kind, lab
from gnothi.report.comparison import (
    Beside,
    Comparison,
    SearchErrors,
    SideBySide,
    beside,
    paired_tests,
    search_errors,
    side_by_side,
)
from gnothi.report.costs import COUNTS
from gnothi.report.warnings import warnings_of
from gnothi.runs.rows import Row, group, jsonable, rounded
from gnothi.runs.stage_rates import Reached, reached
from gnothi.stats.auroc import auroc
from gnothi.stats.intervals import Interval, mean, mean_interval

# Refusing what cannot be answered, and only that: for questions whose metadata tell whether they are answerable.


@dataclass(frozen=True, slots=True)
class Refusal:
    """``accuracy`` is that of the answerable questions, ``refused_answerable`` the share of them that was refused.

    ``precision``, ``recall`` and ``f1`` are those of refusing, unanswerable questions being the positive class: the measure of
    SelfAware (Yin et al. 2023), which finds refusals by sentence similarity where we look for words (``metrics.forms``).
    """

    n: int
    answerable: int
    unanswerable: int
    accuracy: float | None
    accuracy_interval: Interval | None
    refused_answerable: float | None
    precision: float | None
    recall: float | None
    f1: float | None


def refusal(rows: Sequence[Row]) -> Refusal | None:
    """None for questions that do not tell."""
    known = [row for row in rows if not row.failed and isinstance(row.metadata.get("answerable"), bool)]
    if not known:
        return None
    answerable = [row for row in known if row.metadata["answerable"]]
    unanswerable = [row for row in known if not row.metadata["answerable"]]
    scores = [row.metrics["accuracy"] for row in answerable if "accuracy" in row.metrics]
    wrongly, rightly = (sum(map(abstained, group)) for group in (answerable, unanswerable))
    return Refusal(
        n=len(known),
        answerable=len(answerable),
        unanswerable=len(unanswerable),
        accuracy=mean(scores),
        accuracy_interval=mean_interval(scores),
        refused_answerable=mean(map(abstained, answerable)),
        precision=rightly / (rightly + wrongly) if rightly + wrongly else None,
        recall=rightly / len(unanswerable) if unanswerable else None,
        f1=2 * rightly / (wrongly + rightly + len(unanswerable)) if unanswerable else None,
    )


# Falsehoods: for questions whose metadata hold incorrect answers beside the correct ones (TruthfulQA).


@dataclass(frozen=True, slots=True)
class Truthfulness:
    """``closer``: share of answers that are no refusal and share more with a correct answer than with any incorrect one, by F1
    of words. That is the form of TruthfulQA's own comparisons by BLEU and ROUGE, and no replacement for its fine-tuned judge or
    for people: a false sentence in other words than the listed ones is not noticed. ``refused`` stands beside it, for
    TruthfulQA takes a refusal for truthful but uninformative.
    """

    n: int
    closer: float | None
    closer_interval: Interval | None
    refused: float | None


def truthfulness(rows: Sequence[Row]) -> Truthfulness | None:
    """None for questions without incorrect answers."""
    known = [row for row in rows if not row.failed and row.gold and row.metadata.get("incorrect_answers")]
    if not known:
        return None
    refused = [abstained(row) for row in known]
    closer = [
        not gave_up and f1(row.answer or "", row.gold) > f1(row.answer or "", row.metadata["incorrect_answers"])
        for row, gave_up in zip(known, refused, strict=True)
    ]
    return Truthfulness(
        n=len(known),
        closer=mean(closer),
        closer_interval=mean_interval(closer),
        refused=mean(refused),
    )


@dataclass(frozen=True, slots=True)
class Method:
    """Means over questions that did not fail, of quality over those ``scored``, which have a gold answer. ``retrieval_rate``:
    share of questions with a search. ``gate_auroc`` is None where there is no gate or no truth. ``intervals``: of every mean
    and of ``gate_auroc``, by name."""

    method: str
    dataset: str
    n: int
    failures: int
    em: float | None
    f1: float | None
    accuracy: float | None
    retrieval_rate: float | None
    retrievals: float | None
    model_calls: float | None
    prompt_tokens: float | None
    generated_tokens: float | None
    seconds: float | None
    gate_auroc: float | None
    intervals: Mapping[str, Interval | None]
    cached_calls: float | None
    thought_tokens: float | None
    scored: int
    gate: GateSummary | None
    beside: Beside | None
    search: SearchErrors | None
    lab: Decisions | None
    refusal: Refusal | None
    truthfulness: Truthfulness | None
    reached: Reached | None
    kinds: tuple[Cell, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, for a data frame, say."""
        return dict(jsonable(self))


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run comes to. JSON (``runs.rows.jsonable``), tables, pictures, pages and CSV are written from it alone."""

    dataset: str
    methods: tuple[Method, ...]
    signals: tuple[SideBySide, ...]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...]


def summarise(rows: Sequence[Row], dataset: str, trusting: Collection[str] = (), foreign: Collection[str] = ()) -> Summary:
    """Numbers have six significant digits. ``trusting`` are methods whose gate was told never to fire, ``foreign`` those of
    another model than never and always, to which they are not held."""
    by_method = group(rows)
    ours = {name: own for name, own in by_method.items() if name not in foreign}
    known, contained = (truth(ours, metric, trusting) for metric in ("em", "accuracy"))
    methods = tuple(
        _method(name, own, dataset, ours, known, contained, trusting)
        if name in ours
        else _method(name, own, dataset, {}, None, None, trusting)
        for name, own in by_method.items()
    )
    return rounded(
        Summary(
            dataset=dataset,
            methods=methods,
            signals=tuple(side_by_side(by_method)),
            comparisons=tuple(paired_tests(by_method, trusting)),
            warnings=tuple(f"{method.method}: {warning}" for method in methods for warning in method.warnings),
        )
    )


def _method(
    name: str,
    rows: Sequence[Row],
    dataset: str,
    by_method: Mapping[str, Sequence[Row]],
    known: Truth | None,
    contained: Truth | None,
    trusting: Collection[str],
) -> Method:
    answered = [row for row in rows if not row.failed]
    failures = len(rows) - len(answered)
    columns: dict[str, list[float]] = {
        **{metric: [row.metrics[metric] for row in answered if metric in row.metrics] for metric in METRICS},
        "retrieval_rate": [float(row.retrieved) for row in answered],
        **{cost: [row.cost[cost] for row in answered] for cost in COUNTS},
    }
    gate = gate_summary(rows, known)
    return Method(
        method=name,
        dataset=dataset,
        n=len(rows),
        failures=failures,
        scored=len(columns["em"]),
        **{column: mean(values) for column, values in columns.items()},
        gate_auroc=gate.auroc if gate else None,
        intervals={column: mean_interval(values, share=column not in COUNTS) for column, values in columns.items()}
        | {"gate_auroc": gate.interval if gate else None},
        cached_calls=mean([row.cost.get("cached_calls", 0) for row in answered]),
        thought_tokens=mean([row.cost.get("thought_tokens", 0) for row in answered]),
        gate=gate and replace(gate, auroc_by_accuracy=_by_accuracy(rows, contained)),
        beside=beside(name, by_method, trusting),
        search=search_errors(name, by_method, trusting),
        lab=lab(rows),
        refusal=refusal(rows),
        truthfulness=truthfulness(rows),
        reached=reached(rows),
        kinds=by_kind(rows),
        warnings=warnings_of(name, rows),
    )


def _by_accuracy(rows: Sequence[Row], contained: Truth | None) -> float | None:
    """The gate's AUROC where a closed-book answer counts as right when it contains a gold answer."""
    if contained is None or contained.source == "familiarity":
        return None
    return auroc(*paired_scores(rows, contained))
