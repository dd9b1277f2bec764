"""One row per question and method: what came out, what it cost, how it was decided; or how it failed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from gnothi.errors import recorded
from gnothi.events import Decided, Event, Filtered, Gauge, Gauged, ModelCall, Partial, Picked, Usage, found_nothing
from gnothi.metrics import score
from gnothi.runs.answer_stages import reached
from gnothi.signals.gate import decisive
from gnothi.types import Answer, Question

Key = tuple[str, str]
"""(method, question id)"""
TOLERANCE = 1e-3
T = TypeVar("T")
MERGED = {"merged": True}
"""Metadata of a field of a record whose own fields stand in JSON beside those of the record that holds it."""
OPTIONAL = {"optional": True}
"""Metadata of a field of a record that JSON leaves out where it is None."""


@dataclass(frozen=True, slots=True)
class Row:
    """``metrics`` is empty where there is no gold answer, and for a failure, which has ``error`` (type, message) and no answer.

    ``cost``: retrievals, model_calls, prompt_tokens, generated_tokens, cached_calls (of the model calls, those that the cache
    answered), and seconds of work: from the question's start to its end, without those in which its calls stood in queues
    (``gnothi.waiting``); where a model thought, thought_tokens, which are among the generated ones. ``tally``: replies and how
    many of them were cut by the length limit; filters (of passages or sentences) that were asked and how many of them kept
    nothing; where there are any, searches that some servers had no part in (partial), thoughts that were ended at their limit
    (thoughts_cut), and 1 where no search found anything (found_nothing). ``decisions``: kind, signal, score, threshold,
    verdict, subject, and samples where drawing them ended as soon as it was decided; a score of None with a signal means that
    nothing could be measured, which counts as most uncertain.
    ``signals``: what was measured beside the answer and decided nothing, by name; each has a score and what it took beyond the
    answer (model_calls, prompt_tokens, generated_tokens). Scores keep the digits that gates decide by
    (``signals.gate.decisive``), so
    that the same question gives the same row; events.jsonl has them as they were. ``reached``: whether the answer was ``found``
    and ``read`` (null where that cannot be told) and the ``stage`` that it came to (``runs.answer_stages``); empty where
    nothing is known of it, and in rows of before.
    """

    method: str
    question_id: str
    question: str
    answer: str | None = None
    gold: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    kind: str = ""
    rationale: str = ""
    evidence: tuple[str, ...] = ()
    uncertainty: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)
    tally: Mapping[str, int] = field(default_factory=dict)
    decisions: tuple[Mapping[str, Any], ...] = ()
    signals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reached: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, str] | None = None

    @property
    def key(self) -> Key:
        return self.method, self.question_id

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def retrieved(self) -> bool:
        return self.cost["retrievals"] > 0

    @property
    def found_nothing(self) -> bool:
        """Whether searches found nothing at all."""
        return self.tally.get("found_nothing", 0) > 0

    @property
    def stage(self) -> str:
        """How far the answer came; empty where that is not known."""
        return str(self.reached.get("stage", ""))

    def gate(self) -> list[Mapping[str, Any]]:
        """The decisions whether to retrieve, in order."""
        return [decision for decision in self.decisions if decision["kind"] == "retrieve"]

    def as_dict(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def comparable(self) -> dict[str, Any]:
        """Everything that running again must give again: all but the time, and what was in the cache."""
        cost = {name: value for name, value in self.cost.items() if name not in ("seconds", "cached_calls")}
        return dict(jsonable({**self.as_dict(), "cost": cost}))

    def agrees(self, other: Row) -> bool:
        """Whether both say the same, numbers up to a relative ``TOLERANCE``: a score may lie on the edge of rounding."""
        return _agree(self.comparable(), other.comparable())


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_agree(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_agree(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE * 1e-3)
    return bool(one == other)


def answered(method: str, question: Question, answer: Answer, events: Iterable[Event], seconds: float) -> Row:
    events = list(events)
    scores = score(answer.text, question.answers, question.choices, question.metadata.get("answerable") is not False)
    return Row(
        answer=answer.text,
        rationale=answer.rationale,
        evidence=tuple(passage.id for passage in answer.evidence),
        uncertainty=_rounded(answer.uncertainty),
        metrics={name: significant(value) for name, value in scores.items()},
        reached=reached(question, answer, scores, events),
        **_shared(method, question, events, seconds),
    )


def failure(method: str, question: Question, error: Exception, events: Iterable[Event], seconds: float) -> Row:
    return Row(error=recorded(error), **_shared(method, question, list(events), seconds))


def _shared(method: str, question: Question, events: list[Event], seconds: float) -> dict[str, Any]:
    return {
        "method": method,
        "question_id": question.id,
        "question": question.text,
        "gold": question.answers,
        "choices": question.choices,
        "kind": question.kind,
        "cost": _cost(events) | {"seconds": round(seconds, 4)},
        "tally": _tally(events),
        "decisions": tuple(_decision(event) for event in events if isinstance(event, Decided)),
        "signals": {gauge.signal: _gauge(gauge) for event in events if isinstance(event, Gauged) for gauge in event.gauges},
        "metadata": jsonable(question.metadata),
    }


def _cost(events: Sequence[Event]) -> dict[str, float]:
    cost: dict[str, float] = asdict(Usage.of(events))
    if not cost["thought_tokens"]:
        del cost["thought_tokens"]
    return cost


def _tally(events: Sequence[Event]) -> dict[str, int]:
    calls = [event for event in events if isinstance(event, ModelCall)]
    kept = [len(event.kept) for event in events if isinstance(event, Picked)]
    kept += [sum(stays for *_, stays in event.sentences) for event in events if isinstance(event, Filtered)]
    fallen = sum(isinstance(event, Decided) and event.verdict == "fall_back" for event in events)
    rare = {
        "partial": sum(isinstance(event, Partial) for event in events),
        "thoughts_cut": sum(call.thoughts_cut for call in calls),
        "found_nothing": int(found_nothing(events)),
    }
    return {
        "replies": sum(len(call.texts) for call in calls if call.operation in ("generate", "sample")),
        "cut": sum(call.cut for call in calls),
        "filters": len(kept),
        "emptied": max(kept.count(0), fallen),
    } | {name: count for name, count in rare.items() if count}


def _gauge(gauge: Gauge) -> dict[str, Any]:
    row = asdict(gauge)
    del row["signal"]
    return {**row, "score": _rounded(gauge.score)}


def _decision(event: Decided) -> dict[str, Any]:
    threshold = None if event.threshold is None else jsonable(event.threshold)
    row = {**asdict(event), "score": _rounded(event.score), "threshold": threshold}
    # Scores that are compared with each other differ in digits that no threshold counts.
    digits = _rounded if event.threshold is not None else _significant
    draws = [[digits(score) for score in scores] for scores in event.draws]
    optional = {"samples": event.samples, "draws": draws or None}
    return {key: one for key, one in (row | optional).items() if key not in optional or one is not None}


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else decisive(value)


def _significant(value: float | None) -> float | None:
    return None if value is None else significant(value)


def significant(value: float) -> float:
    """Rounded to six significant digits."""
    return float(f"{value:.6g}")


def jsonable(value: Any) -> Any:
    """``value`` as plain JSON: records and mappings are objects, sequences lists; what is not finite is null, the rest text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        members: dict[str, Any] = {}
        for item in fields(value):
            inner = jsonable(getattr(value, item.name))
            if inner is not None or "optional" not in item.metadata:
                members |= inner if "merged" in item.metadata else {item.name: inner}
        return members
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in (sorted(value, key=repr) if isinstance(value, set | frozenset) else value)]
    if hasattr(value, "tolist"):  # numpy
        return jsonable(value.tolist())
    return str(value)


def rounded(value: T) -> T:
    """Six significant digits everywhere, in records, mappings and sequences of the same kind."""
    result: Any = value
    if isinstance(value, float):
        result = significant(value)
    elif isinstance(value, Mapping):
        result = {key: rounded(item) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{item.name: rounded(getattr(value, item.name)) for item in fields(value)})
    elif isinstance(value, list | tuple):
        items = [rounded(item) for item in value]
        result = items if isinstance(value, list) else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return cast(T, result)


def group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by method, in order of appearance."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    return by_method


def scored(rows: Sequence[Row]) -> dict[str, Row]:
    """Rows with metrics by question id: neither failed nor without gold answer."""
    return {row.question_id: row for row in rows if row.metrics}
