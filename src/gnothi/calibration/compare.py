"""What recorded gates come to at any threshold: never, always and oracle, and per signal AUROC, frontier and choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.from_file import NO, ONE, read_recorded
from gnothi.calibration.from_run import read_run
from gnothi.calibration.replay import Floats, Mask, Replay, Scores
from gnothi.calibration.verdicts import DEGENERATE, advice
from gnothi.errors import InvalidInput
from gnothi.runs.rows import rounded
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.correlation import spearman
from gnothi.stats.frontier import Scorer, Validated, at, crossvalidate, frontier, gap_closed, oracle
from gnothi.stats.intervals import mean_interval
from gnothi.stats.logistic import fit_logistic

FEWEST = 20
"""With fewer questions, nothing is chosen."""
COMBINATIONS = {
    "wrong": "P(wrong from memory)",
    "helps": "P(retrieval helps), learned where it makes a difference",
}


def read(
    path: Path, metric: str | None = None, never: str | None = None, always: str | None = None, surer: Sequence[str] = ()
) -> Replay:
    """A run folder, or a file of recorded outcomes. Raises InvalidInput or UnknownName."""
    if path.is_dir():
        return read_run(path, metric or "em", never, always)
    return read_recorded(path, metric or "contained", never or NO, always or ONE, surer)


def document(replay: Replay, price: float = 0.0, thresholds: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What ``gnothi gates --json`` prints for one file.

    ``price`` is what a retrieval costs, in accuracy; ``thresholds`` are to be replayed, by any of a signal's ``names``, in
    the units of the record."""
    best = oracle(replay.never, replay.always)
    given = thresholds or {}
    signals = {
        signal.name: _signal(signal, replay, price, next((given[name] for name in signal.names if name in given), None))
        for signal in replay.signals
    }
    found = {
        "file": replay.source,
        "dataset": replay.dataset,
        "metric": replay.metric,
        "n": replay.n,
        "never": _mean(replay.never),
        "always": _mean(replay.always),
        "oracle": _mean(best),
        "intervals": {
            name: mean_interval(values)
            for name, values in (("never", replay.never), ("always", replay.always), ("oracle", best))
        },
        "names": {"never": replay.names[0], "always": replay.names[1]},
        "oracle_retrieval_rate": _mean(replay.always > replay.never),
        "others": {name: _other(name, replay) for name in replay.others},
        "price": price,
        "signals": signals,
        "combinations": _combinations(replay, price),
        "correlations": {
            "of": list(signals),
            "spearman": spearman([signal.values for signal in replay.signals]),
        },
        "warnings": [*replay.alarms, *(warning for name, one in signals.items() for warning in _decides_nothing(name, one))],
    }
    return dict(rounded(found))


def _other(name: str, replay: Replay) -> dict[str, Any]:
    """Another way to answer, and the oracle of never and it."""
    values = replay.others[name]
    return {
        "accuracy": _mean(values),
        "interval": mean_interval(values),
        "oracle": _mean(oracle(replay.never, values)),
        "searches": replay.searches.get(name),
    }


# --- one signal ----------------------------------------------------------------------------------------------------


def _signal(signal: Scores, replay: Replay, price: float, threshold: float | None) -> dict[str, Any]:
    scores, wrong = signal.values[signal.known], signal.wrong[signal.known]
    finite = signal.sign * signal.values[np.isfinite(signal.values)]
    line = frontier(signal.values, replay.never, replay.always)
    hindsight = line.best(price)
    return {
        "method": signal.method,
        "auroc": auroc(scores, wrong),
        "interval": auroc_interval(scores, wrong),
        "truth": signal.truth,
        "n": int(signal.known.sum()),
        "wrong": int(wrong.sum()),
        "retrieve_when": "above" if signal.sign > 0 else "below",
        "range": [float(finite.min()), float(finite.max())] if len(finite) else None,
        "not_measured": int((~np.isfinite(signal.values)).sum()),
        "frontier": [
            {
                "threshold": signal.recorded(point.threshold),
                "accuracy": point.accuracy,
                "retrieval_rate": point.retrieval_rate,
            }
            for point in line.points()
        ],
        "hindsight": {"accuracy": hindsight.accuracy, "retrieval_rate": hindsight.retrieval_rate},
        "chosen": _chosen(replay, price, lambda _: signal.values, signal.recorded(hindsight.threshold)),
        **({} if threshold is None else {"replayed": _replayed(signal, replay, threshold)}),
    }


def _chosen(replay: Replay, price: float, scorer: Scorer, threshold: float | None) -> dict[str, Any] | None:
    """``threshold`` is the one chosen on all questions; the rest says what choosing so is worth on questions not chosen on."""
    if replay.n < FEWEST:
        return None
    judged = crossvalidate(scorer, replay.never, replay.always, price)
    return {"threshold": threshold, **_worth(judged, replay)}


def _worth(judged: Validated, replay: Replay) -> dict[str, Any]:
    closed = gap_closed(judged.quality, replay.never, replay.always)
    better = max(replay.never, replay.always, key=lambda values: float(values.mean()))
    return {
        "accuracy": _mean(judged.quality),
        "retrieval_rate": _mean(judged.retrieved),
        "interval": judged.interval,
        "gain": float((judged.quality - better).mean()),
        "gain_interval": mean_interval(judged.quality - better),
        "gap_closed": closed.share,
        "gap_closed_interval": closed.interval,
    }


def _replayed(signal: Scores, replay: Replay, threshold: float) -> dict[str, Any]:
    retrieved, quality = at(signal.sign * threshold, signal.values, replay.never, replay.always)
    trusted = replay.never[~retrieved]
    return {
        "threshold": threshold,
        "accuracy": _mean(quality),
        "interval": mean_interval(quality),
        "retrieval_rate": _mean(retrieved),
        "trusted": len(trusted),
        "error_among_trusted": float((trusted < 1).mean()) if len(trusted) else None,
        "over_search": _mean(retrieved & (replay.never >= 1)),
        "under_search": _mean(~retrieved & (replay.never < 1)),
    }


def _decides_nothing(name: str, signal: Mapping[str, Any]) -> list[str]:
    """A signal without a single score, or a threshold to be replayed that (almost) never or always fires."""
    if signal["range"] is None:
        return [f"{name}: there is no score of any question, so it tells nothing: every gate by it always retrieves."]
    replayed = signal.get("replayed")
    if replayed is None or DEGENERATE < replayed["retrieval_rate"] < 1 - DEGENERATE:
        return []
    fires = "never" if replayed["retrieval_rate"] <= DEGENERATE else "always"
    chosen = signal["chosen"]
    better = "" if chosen is None or chosen["threshold"] is None else f" Accuracy is best at {chosen['threshold']:g}."
    where = advice(signal["range"], [replayed["threshold"]], signal["retrieve_when"] == "above")
    return [f"{name}: the threshold {replayed['threshold']:g} (almost) {fires} retrieves.{where}{better}"]


# --- all signals together -------------------------------------------------------------------------------------------


def _combinations(replay: Replay, price: float) -> dict[str, Any]:
    """Logistic regressions of all signals, fitted, like their thresholds, on other questions than they are judged on."""
    if len(replay.signals) < 2 or replay.n < FEWEST:
        return {}
    features = _features(replay.signals)
    differ = replay.never != replay.always
    targets = {
        "wrong": (replay.never < 1, np.ones(replay.n, dtype=bool)),
        "helps": (replay.always > replay.never, differ),
    }
    found = {}
    for name, (target, usable) in targets.items():
        try:
            judged = crossvalidate(_learner(features, target, usable), replay.never, replay.always, price)
        except InvalidInput:  # one class only in some fold: nothing to learn from
            continue
        found[name] = {
            "predicts": COMBINATIONS[name],
            "of": [signal.name for signal in replay.signals],
            **_worth(judged, replay),
        }
    return found


def _learner(features: Floats, target: Mask, usable: Mask) -> Scorer:
    def scorer(learn: Mask) -> Floats:
        chosen = learn & usable
        return fit_logistic(features[chosen], target[chosen])(features)

    return scorer


def _features(signals: Sequence[Scores]) -> Floats:
    """Shape (n, d). Positive ones as logarithms: perplexities spread over magnitudes. Not measured counts as highest."""
    columns = []
    for signal in signals:
        values = signal.values.copy()
        finite = np.isfinite(values)
        values[~finite] = values[finite].max() if finite.any() else 0.0
        columns.append(np.log(values) if (values > 0).all() else values)
    return np.column_stack(columns)


def _mean(values: Any) -> float:
    return float(np.mean(values))
