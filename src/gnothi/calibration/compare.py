"""What recorded gates come to at any threshold: never, always and oracle, and per signal AUROC, frontier and choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.from_file import NO, ONE, read_recorded
from gnothi.calibration.from_run import read_run
from gnothi.calibration.from_table import ALWAYS, NEVER, RECORDED, is_table, read_scored
from gnothi.calibration.replay import Replay, Scores
from gnothi.calibration.verdicts import advice, one_sided
from gnothi.errors import InvalidSetting
from gnothi.runs.rows import MERGED, OPTIONAL, rounded
from gnothi.runs.stage_rates import Reached
from gnothi.stats.auroc import auroc, auroc_interval, auroc_within
from gnothi.stats.frontier import at, crossvalidate, frontier, gap_closed, oracle
from gnothi.stats.intervals import Interval, mean_interval, spearman

FEWEST = 20
"""With fewer questions, nothing is chosen."""
CHANCE = 0.5
"""The AUROC of what tells nothing."""
_NAMED = 4  # signals in one warning, those that lose most first


@dataclass(frozen=True, slots=True)
class Worth:
    """A gate on questions that its threshold was not chosen on. ``gain``: over the better of never and always; ``gap_closed``:
    its share of the way from there to the oracle."""

    accuracy: float
    retrieval_rate: float
    interval: Interval | None
    gain: float
    gain_interval: Interval | None
    gap_closed: float | None
    gap_closed_interval: Interval | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The threshold chosen on all questions, None to retrieve always; what choosing so is worth on other questions."""

    threshold: float | None
    worth: Worth = field(metadata=MERGED)


@dataclass(frozen=True, slots=True)
class Point:
    threshold: float | None
    accuracy: float
    retrieval_rate: float


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What the best threshold, the price counted, does on these very questions."""

    accuracy: float
    retrieval_rate: float


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """A given threshold replayed: of the ``trusted`` questions, ``error_among_trusted`` are wrong from memory."""

    threshold: float
    accuracy: float
    interval: Interval | None
    retrieval_rate: float
    trusted: int
    error_among_trusted: float | None
    over_search: float
    under_search: float


@dataclass(frozen=True, slots=True)
class Signal:
    """``auroc``: does it tell which answers of ``truth`` are wrong? ``within``: the same among questions of one kind, where the
    record has several. ``range``: the lowest and the highest score;
    ``not_measured`` questions have none and count as the least certain. ``chosen`` is None for too few
    questions, ``replayed`` where no threshold was given."""

    method: str
    auroc: float | None
    interval: Interval | None
    truth: str
    n: int
    wrong: int
    retrieve_when: str
    range: list[float] | None
    not_measured: int
    frontier: tuple[Point, ...]
    hindsight: Hindsight
    chosen: Choice | None
    within: float | None = field(default=None, metadata=OPTIONAL)
    replayed: AtThreshold | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Other:
    """Another way to answer, and the oracle of never and it."""

    accuracy: float
    interval: Interval | None
    oracle: float
    searches: float | None


@dataclass(frozen=True, slots=True)
class Correlations:
    """Spearman's rank correlations between signals, a square in the order of ``of``."""

    of: list[str]
    spearman: list[list[float | None]]


@dataclass(frozen=True, slots=True)
class Gates:
    """Gates by signal between never and always retrieving, whose methods ``names`` has; all by ``metric`` on ``n`` questions.
    ``intervals`` are those of never, always and oracle."""

    metric: str
    n: int
    never: float
    always: float
    oracle: float
    intervals: Mapping[str, Interval | None]
    names: Mapping[str, str]
    oracle_retrieval_rate: float
    others: Mapping[str, Other]
    price: float
    signals: Mapping[str, Signal]
    correlations: Correlations


@dataclass(frozen=True, slots=True)
class Compared:
    """What ``gnothi calibrate --replay --json`` prints for one file."""

    file: str
    dataset: str
    gates: Gates = field(metadata=MERGED)
    warnings: list[str]
    reached: Mapping[str, Reached] = field(default_factory=dict)


def read(
    path: Path, metric: str | None = None, never: str | None = None, always: str | None = None, surer: Sequence[str] = ()
) -> Replay:
    """A run folder, a table of scores and outcomes, or a file of recorded answers. Raises InvalidInput or UnknownName."""
    if path.is_dir():
        return read_run(path, metric or "em", never, always)
    if is_table(path):
        if metric not in (None, RECORDED):
            raise InvalidSetting(
                f"<--metric>: got {metric!r} for {path}, which holds no answers but how good each was. Leave <--metric> out."
            )
        return read_scored(path, never or NEVER, always or ALWAYS, surer)
    return read_recorded(path, metric or "contained", never or NO, always or ONE, surer)


def document(replay: Replay, price: float = 0.0, thresholds: Mapping[str, float] | None = None) -> Compared:
    """``price`` is what a retrieval costs, in accuracy; ``thresholds`` are to be replayed, by any of a signal's ``names``, in
    the units of the record."""
    best = oracle(replay.never, replay.always)
    given = thresholds or {}
    signals = {
        signal.name: _signal(signal, replay, price, next((given[name] for name in signal.names if name in given), None))
        for signal in replay.signals
    }
    gates = Gates(
        metric=replay.metric,
        n=replay.n,
        never=_mean(replay.never),
        always=_mean(replay.always),
        oracle=_mean(best),
        intervals={
            name: mean_interval(values)
            for name, values in (("never", replay.never), ("always", replay.always), ("oracle", best))
        },
        names={"never": replay.names[0], "always": replay.names[1]},
        oracle_retrieval_rate=_mean(replay.always > replay.never),
        others={name: _other(name, replay) for name in replay.others},
        price=price,
        signals=signals,
        correlations=Correlations(list(signals), spearman([signal.values for signal in replay.signals])),
    )
    warnings = [
        *replay.alarms,
        *(warning for name, one in signals.items() for warning in _decides_nothing(name, one, price)),
        *_tells_kinds(signals),
    ]
    return rounded(Compared(replay.source, replay.dataset, gates, warnings, replay.reached))


def _other(name: str, replay: Replay) -> Other:
    values = replay.others[name]
    best = oracle(replay.never, values)
    return Other(_mean(values), mean_interval(values), _mean(best), replay.searches.get(name))


# --- one signal ----------------------------------------------------------------------------------------------------


def _signal(signal: Scores, replay: Replay, price: float, threshold: float | None) -> Signal:
    scores, wrong = signal.values[signal.known], signal.wrong[signal.known]
    finite = signal.sign * signal.values[np.isfinite(signal.values)]
    line = frontier(signal.values, replay.never, replay.always)
    hindsight = line.best(price)
    return Signal(
        method=signal.method,
        auroc=auroc(scores, wrong),
        interval=auroc_interval(scores, wrong),
        truth=signal.truth,
        n=int(signal.known.sum()),
        wrong=int(wrong.sum()),
        retrieve_when="above" if signal.sign > 0 else "below",
        range=[float(finite.min()), float(finite.max())] if len(finite) else None,
        not_measured=int((~np.isfinite(signal.values)).sum()),
        frontier=tuple(
            Point(signal.recorded(point.threshold), point.accuracy, point.retrieval_rate) for point in line.points()
        ),
        hindsight=Hindsight(hindsight.accuracy, hindsight.retrieval_rate),
        chosen=None if replay.n < FEWEST else Choice(signal.recorded(hindsight.threshold), _worth(signal, replay, price)),
        within=auroc_within(scores, wrong, list(compress(replay.kinds, signal.known))) if replay.kinds else None,
        replayed=None if threshold is None else _replayed(signal, replay, threshold),
    )


def _worth(signal: Scores, replay: Replay, price: float) -> Worth:
    """What choosing a threshold is worth on questions that it was not chosen on."""
    judged = crossvalidate(signal.values, replay.never, replay.always, price)
    closed = gap_closed(judged.quality, replay.never, replay.always)
    better = max(replay.never, replay.always, key=lambda values: float(values.mean()))
    return Worth(
        accuracy=_mean(judged.quality),
        retrieval_rate=_mean(judged.retrieved),
        interval=judged.interval,
        gain=float((judged.quality - better).mean()),
        gain_interval=mean_interval(judged.quality - better, share=False),
        gap_closed=closed.share,
        gap_closed_interval=closed.interval,
    )


def _replayed(signal: Scores, replay: Replay, threshold: float) -> AtThreshold:
    retrieved, quality = at(signal.sign * threshold, signal.values, replay.never, replay.always)
    trusted = replay.never[~retrieved]
    return AtThreshold(
        threshold=threshold,
        accuracy=_mean(quality),
        interval=mean_interval(quality),
        retrieval_rate=_mean(retrieved),
        trusted=len(trusted),
        error_among_trusted=float((trusted < 1).mean()) if len(trusted) else None,
        over_search=_mean(retrieved & (replay.never >= 1)),
        under_search=_mean(~retrieved & (replay.never < 1)),
    )


def _decides_nothing(name: str, signal: Signal, price: float) -> list[str]:
    """A signal without a single score, or a threshold to be replayed that (almost) never or always fires."""
    if signal.range is None:
        return [f"{name}: there is no score of any question, so it tells nothing: every gate by it always retrieves."]
    replayed = signal.replayed
    fires = None if replayed is None else one_sided(replayed.retrieval_rate)
    if replayed is None or fires is None:
        return []
    chosen = signal.chosen
    priced = f" less {price:g} a retrieval" if price else ""
    better = "" if chosen is None or chosen.threshold is None else f" Accuracy{priced} is best at {chosen.threshold:g}."
    where = advice(signal.range, [replayed.threshold], signal.retrieve_when == "above")
    return [f"{name}: the threshold {replayed.threshold:g} (almost) {fires} retrieves.{where}{better}"]


def _tells_kinds(signals: Mapping[str, Signal]) -> list[str]:
    """Signals that tell wrong answers less well among questions of one kind than their AUROC's interval allows."""
    less = [
        (signal.within - signal.auroc, f"{name} {_digits(signal.auroc)}, {_digits(signal.within)}")
        for name, signal in signals.items()
        if signal.auroc is not None and signal.auroc > CHANCE
        if signal.within is not None and signal.interval is not None and signal.within < signal.interval.low
    ]
    if not less:
        return []
    more = f", and {len(less) - _NAMED} more (all by --json)" if len(less) > _NAMED else ""
    worst = "; ".join(text for _, text in sorted(less)[:_NAMED])
    return [
        f"AUROC over all questions, and among those of one kind: {worst}{more}. A part of what is told is which kind of "
        "question is hard, not what the model knows."
    ]


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".removeprefix("0")


def _mean(values: Any) -> float:
    return float(np.mean(values))
