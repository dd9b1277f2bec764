"""A run of ``gnothi eval`` as outcomes that gates are replayed on: one method never retrieves, one always, some have gates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gnothi import methods
from gnothi.calibration.baselines import ByMethod, always_of, gauged, never_of, require_two
from gnothi.calibration.replay import Known, Replay, Scores
from gnothi.calibration.verdicts import degenerate, gate_summary, gauged_scores, question_scores, truth
from gnothi.errors import InvalidInput, UnknownName
from gnothi.filtering.traits import STAGES, Texts
from gnothi.methods.panel import place_of
from gnothi.metrics import METRICS
from gnothi.roles import ALWAYS, AT_ONCE, EVERY_SIGNAL, REASONING
from gnothi.runs.folder import read_rows
from gnothi.runs.journal import read_config
from gnothi.runs.rows import Row, group, scored
from gnothi.runs.stage_rates import reached


@dataclass(frozen=True, slots=True)
class _Track:
    """A signal as one method measured it: question id -> score. ``beside`` its answers, where nothing was decided by it."""

    method: str
    signal: str
    scores: Mapping[str, float]
    beside: bool = False


def read_run(path: Path, metric: str = "em", never: str | None = None, always: str | None = None) -> Replay:
    """Scores of every method with a gate, and all that ``panel`` measured, on the questions that they, never and always all
    answered.

    What stands for never and always is told by ``baselines.never_of`` and ``baselines.always_of``. The signals of ``panel``,
    and the gate of a method whose threshold was infinite, so that it never searched, are held against these methods' own
    answers. Raises InvalidInput, UnknownName, or InvalidSetting where both are the same."""
    config, by_method = read_config(path), group(read_rows(path))
    trusting = [name for name in by_method if trusts_all(config, name)]
    name = str(config.get("dataset.name", path.name))
    return replay_methods(by_method, trusting, f"the run {path}", str(path), name, metric, never, always, config)


def replay_methods(
    by_method: ByMethod,
    trusting: Collection[str],
    what: str,
    source: str,
    dataset: str,
    metric: str = "em",
    never: str | None = None,
    always: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Replay:
    """As ``read_run``, from rows by method; ``trusting`` are methods whose gate was told never to fire, ``what`` names the
    rows in messages."""
    if metric not in METRICS:
        raise UnknownName("metric of a run", metric, METRICS)
    for given in (never, always):
        if given is not None and given not in by_method:
            raise UnknownName(f"method of {what}", given, by_method)
    without, with_ = never or never_of(by_method, trusting), always or always_of(by_method)
    if without is None or with_ is None:
        raise InvalidInput(_lacking(what, by_method, without))
    require_two(without, with_)
    ends = {name: scored(by_method[name]) for name in (without, with_)}
    tracks = [
        track
        for track in _tracks(by_method, trusting)
        if track.method != with_ and (track.method != without or track.method in trusting or track.beside)
    ]
    tables: list[Mapping[str, object]] = [*ends.values(), *(track.scores for track in tracks)]
    common = [question for question in ends[without] if all(question in table for table in tables)]
    if not common:
        every = ", ".join(dict.fromkeys([*ends, *(track.method for track in tracks)]))
        raise InvalidInput(f"{what} holds no question with a gold answer that {every} all answered.")
    quality = {
        name: np.array([table[question].metrics[metric] for question in common])
        for name, table in ((name, scored(rows)) for name, rows in by_method.items())
        if all(question in table for question in common)
    }
    kinds = tuple(ends[without][question].kind for question in common)
    known, tokens = _stages([ends[with_][question] for question in common])
    others = {name: values for name, values in quality.items() if name not in ends}
    return Replay(
        source=source,
        dataset=dataset,
        metric=metric,
        names=(without, with_),
        never=quality[without],
        always=quality[with_],
        signals=tuple(_signals(by_method, tracks, common, metric, trusting)),
        others=others,
        searches={name: _searches(by_method[name]) for name in (with_, *others)},
        alarms=tuple(
            f"{name}: {alarm}" for name, rows in by_method.items() if (alarm := degenerate(gate_summary(rows, None), name))
        ),
        settings=settings or {},
        questions=tuple(common),
        texts=tuple(
            Texts(row.question, row.answer, ends[with_][question].answer)
            for question, row in ((question, ends[without][question]) for question in common)
        ),
        kinds=kinds if len(set(kinds)) > 1 else (),
        known=known,
        tokens=tokens,
        reached={name: found for name, rows in by_method.items() if (found := reached(rows))},
    )


def trusts_all(config: Mapping[str, Any], method: str) -> bool:
    """Whether the run's gate of that name was told never to fire."""
    gate = methods.spec(method).gate if method in methods.names() else None
    return gate is not None and config.get(f"method.{method}.{gate.key}") == float("inf")


def replay_scores(rows: Sequence[Row], trusts_all: bool = False) -> dict[str, float]:
    """Question id -> highest score of its decisions; infinite also where a gate fired for another reason than the
    score (a blank draft): no threshold makes it trust that."""
    scores = question_scores(rows)
    for row in rows:
        for decision in row.gate() if row.question_id in scores else ():
            score, threshold = decision["score"], decision["threshold"]
            under = trusts_all or (threshold is not None and score is not None and score <= threshold)
            if decision["verdict"] == "retrieve" and under:
                scores[row.question_id] = float("inf")
    return scores


def _tracks(by_method: ByMethod, trusting: Collection[str]) -> list[_Track]:
    tracks = []
    for name, rows in by_method.items():
        if scores := replay_scores(rows, name in trusting):
            tracks.append(_Track(name, _signal_of(rows), scores))
        if gauged(rows):
            tracks += [_Track(name, signal, values, beside=True) for signal, values in gauged_scores(rows).items()]
    return tracks


def _signals(
    by_method: ByMethod,
    tracks: Sequence[_Track],
    questions: Sequence[str],
    metric: str,
    trusting: Collection[str],
) -> list[Scores]:
    names = [track.signal for track in tracks]
    judge = truth(by_method, metric, trusting)
    signals = []
    for track in tracks:
        label = track.signal if names.count(track.signal) == 1 else f"{track.method}: {track.signal}"
        wrong, source = (judge.wrong, judge.source) if judge else ({}, "")
        if track.beside or track.method in trusting:
            wrong = {question: row.metrics[metric] < 1 for question, row in scored(by_method[track.method]).items()}
            source = track.method
        values = np.array([track.scores[question] for question in questions], dtype=np.float64)
        missed = np.array([wrong.get(question, False) for question in questions])
        known = np.array([question in wrong for question in questions])
        signal, settings = place_of(track.signal) if track.beside else (track.signal, {})
        signals.append(Scores(label, values, missed, known, source, 1, track.method, signal, settings))
    return signals


def _stages(rows: Sequence[Row]) -> tuple[tuple[Known, ...], dict[str, float]]:
    """What rows of a method that always retrieves say of its stages, and the tokens that these took."""
    gauges = [{tuple(name.split(": ", 1)): gauge for name, gauge in row.signals.items() if ": " in name} for row in rows]
    names = [name for name in dict.fromkeys(name for of_row in gauges for name in of_row) if name[0] in STAGES]
    known, spent = [], {}
    for stage, name in names:
        entries = [of_row.get((stage, name), {}) for of_row in gauges]
        scores = [entry.get("score") for entry in entries]
        known.append(Known(name, stage, np.array([np.nan if score is None else score for score in scores], dtype=np.float64)))
        spent[stage] = float(np.mean([entry.get("prompt_tokens", 0) + entry.get("generated_tokens", 0) for entry in entries]))
    return tuple(known), spent


def _signal_of(rows: Sequence[Row]) -> str:
    return ", ".join(sorted({decision["signal"] for row in rows for decision in row.gate() if decision["signal"]}))


def _searches(rows: Sequence[Row]) -> float:
    return float(np.mean([row.cost["retrievals"] for row in rows if not row.failed]))


def _lacking(what: str, by_method: ByMethod, without: str | None) -> str:
    lacking = (
        f"{EVERY_SIGNAL}, {REASONING} or {AT_ONCE}, which never retrieve"
        if without is None
        else f"{ALWAYS}, which always retrieves"
    )
    names = ",".join(dict.fromkeys([REASONING, ALWAYS, *by_method]))
    return (
        f"{what} holds {', '.join(by_method) or 'nothing'}: got none of {lacking}, expected both ends that a gate "
        f"stands between. Run <--method {names}> into another folder, or name methods of this run with <--never> and "
        "<--always>."
    )
