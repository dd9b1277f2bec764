"""A row as it stands in a file, read back: whatever else a file may hold is refused here, so that nobody has to check again."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from gnothi.errors import InvalidInput, shown
from gnothi.metrics import METRICS
from gnothi.runs.rows import Row

_FIELDS = tuple(item.name for item in fields(Row))
_REQUIRED = tuple(item.name for item in fields(Row) if item.default is MISSING and item.default_factory is MISSING)
_TEXTS = ("method", "question_id", "question", "kind", "rationale")
_LISTS = ("gold", "choices", "evidence")
_OBJECTS = ("metrics", "cost", "tally", "signals", "metadata", "reached")
_TOKENS = ("model_calls", "prompt_tokens", "generated_tokens")
_COSTS = ("retrievals", *_TOKENS, "seconds")
_DECISION = ("kind", "signal", "score", "threshold", "verdict")

_NUMBER = "a finite number"
_SCORE = "a finite number, or null where nothing could be measured"


class _Bad(Exception):
    """What was got and what was expected."""

    def __init__(self, got: str, expected: str) -> None:
        super().__init__(f"got {got}, expected {expected}")


def from_dict(data: Mapping[str, Any], place: str) -> Row:
    """The row that ``Row.as_dict`` wrote; keys of later versions are left aside.

    Raises InvalidInput naming ``place`` and the key, what stands there and what was expected."""
    try:
        _check(data)
    except _Bad as bad:
        raise InvalidInput(
            f"{place}: {bad}. Restore the file as `gnothi eval` wrote it; or remove the line, and the same `gnothi eval` asks "
            "the question again."
        ) from None
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in _FIELDS
    }
    return Row(**values)


def finite(value: object) -> bool:
    """Whether it is a number that can be computed with; a whole number may be too large for that."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _check(data: Mapping[str, Any]) -> None:
    _keys(data, _REQUIRED, "")
    for key in _TEXTS:
        if not isinstance(data.get(key, ""), str):
            raise _wrong(key, data[key], "text")
    answer, error = data.get("answer"), data.get("error")
    if answer is not None and not isinstance(answer, str):
        raise _wrong("answer", answer, "text or null")
    if error is not None:
        _object("error", error)
        for key in ("type", "message"):
            if not isinstance(error.get(key), str):
                raise _wrong(f"error.{key}", error.get(key), "text")
    for key in _LISTS:
        value = data.get(key, [])
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise _wrong(key, value, "a list of text")
    for key in _OBJECTS:
        _object(key, data.get(key, {}))
    _score("uncertainty", data.get("uncertainty"))
    if metrics := data.get("metrics", {}):
        _numbers("metrics", metrics, METRICS)
    _numbers("cost", data.get("cost", {}), _COSTS if error is None else ())
    _numbers("tally", data.get("tally", {}), ())
    for key, value in data.get("reached", {}).items():
        if not isinstance(value, str if key == "stage" else bool | None):
            raise _wrong(f"reached.{key}", value, "text" if key == "stage" else "true, false or null")
    for place, decision in _listed("decisions", data.get("decisions", [])):
        _keys(decision, _DECISION, place)
        for key in ("kind", "signal", "verdict"):
            if not isinstance(decision[key], str):
                raise _wrong(f"{place}.{key}", decision[key], "text")
        for key in ("score", "threshold"):
            _score(f"{place}.{key}", decision[key])
    for name, gauge in data.get("signals", {}).items():
        _object(f"signals.{name}", gauge)
        _keys(gauge, ("score",), f"signals.{name}")
        _score(f"signals.{name}.score", gauge["score"])
        _numbers(f"signals.{name}", {key: value for key, value in gauge.items() if key in _TOKENS}, _TOKENS)


def _keys(data: Mapping[str, Any], required: Collection[str], place: str) -> None:
    missing = [key for key in required if key not in data]
    if missing:
        where = f" under {place}" if place else ""
        raise _Bad(f"the keys {_cut(', '.join(data)) or '(none)'}{where}", f"{missing[0]} too")


def _object(place: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise _wrong(place, value, "an object")


def _numbers(place: str, values: Mapping[str, Any], required: Collection[str]) -> None:
    _keys(values, required, place)
    for key, value in values.items():
        if not finite(value):
            raise _wrong(f"{place}.{key}", value, _NUMBER)


def _score(place: str, value: object) -> None:
    if value is not None and not finite(value):
        raise _wrong(place, value, _SCORE)


def _listed(place: str, value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, list | tuple):
        raise _wrong(place, value, "a list of objects")
    for number, item in enumerate(value, start=1):
        _object(f"{place}, item {number}", item)
        yield f"{place}, item {number}", item


def _wrong(place: str, value: object, expected: str) -> _Bad:
    return _Bad(f"{place} = {shown(value)}", expected)


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."
