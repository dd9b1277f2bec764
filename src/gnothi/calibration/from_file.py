"""Recorded outcomes: a file that says how a model answered with and without retrieval, and what signals were measured.

JSON Lines with ``question``, ``answers`` and the answers ``no_retrieval``, ``one_retrieval`` and maybe ``multi_retrieval``;
under ``direct`` maybe the short answer that signals were measured on (``answer``) and the signals, a number each. This is the
format of the outcomes of Llama-3-8B-Instruct that AdaRAGUE (Moskvoretskii et al. 2025, arXiv 2501.12835) published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.baselines import require_two
from gnothi.calibration.from_table import ALWAYS, NEVER, columns_of, is_table
from gnothi.calibration.replay import Floats, Mask, Replay, Scores
from gnothi.datasets.records import Record, read_records
from gnothi.errors import InvalidInput, UnknownName, shown
from gnothi.filtering.traits import Texts
from gnothi.metrics import METRICS, Metric, contained

NO, ONE, MULTI = "no_retrieval", "one_retrieval", "multi_retrieval"
SHAPE = (
    f"recorded outcomes hold question, answers and a text for each way of answering ({NO} and {ONE}, or what <--never> and "
    "<--always> name). A data set is asked first: gnothi eval, with methods that never and always retrieve"
)
SURER_WHEN_HIGHER = ("energy_score",)
"""Signals that rise with certainty: SeaKR's code records the log-sum-exp of the logits, the energy's negative."""
FILE_METRICS: Mapping[str, Metric] = {"contained": contained, **METRICS}


def read_recorded(
    path: Path, metric: str = "contained", never: str = NO, always: str = ONE, surer: Sequence[str] = ()
) -> Replay:
    """``never`` and ``always`` are the keys of the answers that stand for them; ``surer`` names further signals that rise with
    certainty. Raises InvalidInput naming file and line, UnknownName, and InvalidSetting where both are the same."""
    if metric not in FILE_METRICS:
        raise UnknownName("metric", metric, FILE_METRICS)
    require_two(never, always)
    records = list(read_records(path))
    if not records:
        raise InvalidInput(f"{path}: got no lines, expected recorded outcomes, one JSON object per question.")
    golds = [_golds(record) for record in records]
    ways = dict.fromkeys([never, always, *(way for way in (NO, ONE, MULTI) if all(way in record.data for record in records))])
    answers = {way: [_answer(record, record.data, way) for record in records] for way in ways}
    quality = {way: _quality(given, golds, metric) for way, given in answers.items()}
    questions = [str(record.data["question"]) if "question" in record.data else None for record in records]
    steps = [_number(record, record.data, f"{MULTI}_steps") for record in records]
    numbers = [step for step in steps if step is not None and np.isfinite(step)]
    return Replay(
        source=str(path),
        dataset=path.name.removesuffix(".jsonl"),
        metric=metric,
        names=(never, always),
        never=quality[never],
        always=quality[always],
        signals=_signals(records, golds, metric, (never, quality[never] < 1), surer),
        others={way: values for way, values in quality.items() if way not in (never, always)},
        searches={MULTI: sum(numbers) / len(numbers)} if len(numbers) == len(records) else {},
        texts=tuple(map(Texts, questions, answers[never], answers[always])),
    )


def is_recorded(path: Path) -> bool:
    """Whether the file's first record holds an answer under the usual name, or the first row of a table both outcomes; not so
    for a file of any other shape, or none."""
    try:
        if is_table(path):
            return {NEVER, ALWAYS} <= set(columns_of(path))
        first = next(iter(read_records(path)), None)
    except InvalidInput:
        return False
    return first is not None and NO in first.data


def _signals(
    records: Sequence[Record], golds: Sequence[Sequence[str]], metric: str, never: tuple[str, Mask], surer: Sequence[str]
) -> tuple[Scores, ...]:
    """Signals are held against the answer that they were measured on, where that was recorded, else against never. What is
    null, missing or not finite was not measured."""
    measured = [_measured(record) for record in records]
    names = dict.fromkeys(name for values_of in measured for name, value in values_of.items() if _is_number(value))
    unknown = [name for name in surer if name not in names]
    if unknown:
        raise UnknownName("signal of the file", unknown[0], names)
    truth, wrong = never
    if all(not values_of or "answer" in values_of for values_of in measured):
        truth = "direct.answer"
        answers = [
            _answer(record, values_of, "answer") if values_of else ""
            for record, values_of in zip(records, measured, strict=True)
        ]
        wrong = _quality(answers, golds, metric) < 1
    signals = []
    for name in names:
        sign = -1 if name in (*SURER_WHEN_HIGHER, *surer) else 1
        scores = [_number(record, values_of, name) for record, values_of in zip(records, measured, strict=True)]
        values = np.array([np.inf if score is None else sign * score for score in scores])
        values[~np.isfinite(values)] = np.inf
        known = np.array([bool(values_of) for values_of in measured])
        signals.append(Scores(name, values, wrong, known, truth, sign))
    return tuple(signals)


def _measured(record: Record) -> Mapping[str, Any]:
    direct = record.data.get("direct")
    if direct is None:
        return {}
    if not isinstance(direct, dict):
        raise record.invalid(f"direct = {direct!r:.60}", "an object with an answer and signals")
    return direct


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(record: Record, data: Mapping[str, Any], key: str) -> float | None:
    """What is a number in one record has to be one in all, or null, or missing."""
    value = data.get(key)
    if value is None:
        return None
    try:
        return float(value) if _is_number(value) else _refuse(record, key, value)
    except OverflowError:
        return _refuse(record, key, value)


def _refuse(record: Record, key: str, value: object) -> float:
    raise record.invalid(f"{key} = {shown(value)}", "a number of ordinary size, or null where nothing was measured")


def _quality(answers: Sequence[str], golds: Sequence[Sequence[str]], metric: str) -> Floats:
    return np.array([FILE_METRICS[metric](answer, gold) for answer, gold in zip(answers, golds, strict=True)], dtype=np.float64)


def _answer(record: Record, data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        got = f"{key} = {value!r:.60}" if key in data else f"the keys {', '.join(data):.100}"
        raise record.invalid(got, f"{key}, a text: {SHAPE}")
    return value


def _golds(record: Record) -> tuple[str, ...]:
    golds = record.texts("answers")
    if not golds:
        raise record.invalid(f"answers = {record.data.get('answers')!r:.60}", f"a list of gold answers, not empty: {SHAPE}")
    return golds
