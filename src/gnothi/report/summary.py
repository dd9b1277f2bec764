"""What a run comes to: per method quality, cost and gate with intervals; methods beside each other; what to be warned of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gnothi.calibration.verdicts import Truth, degenerate, gate_summary, paired_scores, truth
from gnothi.metrics import METRICS, chosen
from gnothi.report.breakdown import by_kind, lab
from gnothi.report.comparison import beside, paired_tests, search_errors
from gnothi.report.costs import COUNTS
from gnothi.report.refusal import refusal
from gnothi.report.side_by_side import side_by_side
from gnothi.report.truthfulness import truthfulness
from gnothi.runs.rows import Row, group, rounded
from gnothi.stats.auroc import auroc
from gnothi.stats.intervals import mean, mean_interval


def summarise(rows: Sequence[Row], dataset: str, trusting: Collection[str] = ()) -> dict[str, Any]:
    """``dataset``, ``methods`` (what ``gnothi eval --json`` prints), ``signals`` side by side, ``comparisons`` and
    ``warnings``; JSON-ready. ``trusting`` are methods whose gate was told never to fire."""
    by_method = group(rows)
    known, contained = (truth(by_method, metric, trusting) for metric in ("em", "accuracy"))
    methods = [_method(name, by_method, dataset, known, contained, trusting) for name in by_method]
    summary = {
        "dataset": dataset,
        "methods": methods,
        "signals": side_by_side(by_method),
        "comparisons": paired_tests(by_method, trusting),
        "warnings": [f"{method['method']}: {warning}" for method in methods for warning in method["warnings"]],
    }
    return dict(rounded(summary))


def _method(
    name: str,
    by_method: Mapping[str, Sequence[Row]],
    dataset: str,
    known: Truth | None,
    contained: Truth | None,
    trusting: Collection[str],
) -> dict[str, Any]:
    rows = by_method[name]
    answered = [row for row in rows if not row.failed]
    failures = len(rows) - len(answered)
    columns: dict[str, list[float]] = {
        **{metric: [row.metrics[metric] for row in answered if metric in row.metrics] for metric in METRICS},
        "retrieval_rate": [float(row.retrieved) for row in answered],
        **{cost: [row.cost[cost] for row in answered] for cost in COUNTS},
    }
    gate = gate_summary(rows, known)
    warning = degenerate(gate, name)
    unscored = len(answered) - len(columns["em"])
    intervals = {column: mean_interval(values) for column, values in columns.items()}
    return {
        "method": name,
        "dataset": dataset,
        "n": len(rows),
        "failures": failures,
        **{column: mean(values) for column, values in columns.items()},
        "gate_auroc": gate["auroc"] if gate else None,
        "intervals": {**intervals, "gate_auroc": gate["interval"] if gate else None},
        "cached_calls": mean([row.cost.get("cached_calls", 0) for row in answered]),
        "gate": gate and {**gate, "auroc_by_accuracy": _by_accuracy(rows, contained)},
        "beside": beside(name, by_method, trusting),
        "search": search_errors(name, by_method, trusting),
        "lab": lab(rows),
        "refusal": refusal(rows),
        "truthfulness": truthfulness(rows),
        "kinds": by_kind(rows),
        "warnings": [
            *([warning] if warning else []),
            *([_failed(rows)] if failures else []),
            *([aside] if (aside := _beside_the_choices(answered)) else []),
            *([f"{unscored} questions have no gold answer and no score"] if unscored else []),
        ],
    }


def _failed(rows: Sequence[Row]) -> str:
    """How many failed, and the commonest reason with an example."""
    errors = [row.error for row in rows if row.error]
    (reason, count), *_ = Counter(error["type"] for error in errors).most_common(1)
    example = next(error["message"] for error in errors if error["type"] == reason)
    most = f"{count} with " if count < len(errors) else ""
    return f"{len(errors)} of {len(rows)} questions failed, {most}{reason}: {example} (The same command tries them again.)"


def _beside_the_choices(answered: Sequence[Row]) -> str | None:
    """Where most answers to multiple-choice questions name none of the choices: such a score says little about knowledge."""
    offered = [row for row in answered if row.choices]
    beside = sum(not chosen(row.answer or "", row.choices) for row in offered)
    if 2 * beside <= len(offered):
        return None
    guessing = mean(1 / len(row.choices) for row in offered)
    return (
        f"{beside} of {len(offered)} answers name none of the choices, or several, and count as wrong; guessing one would be "
        f"right in {guessing:.0%}"
    )


def _by_accuracy(rows: Sequence[Row], contained: Truth | None) -> float | None:
    """The gate's AUROC where a closed-book answer counts as right when it contains a gold answer."""
    if contained is None or contained.source == "familiarity":
        return None
    return auroc(*paired_scores(rows, contained))
