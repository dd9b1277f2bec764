"""Which passages a search may find, by their metadata: ``source=handbook.pdf``, ``date>=2025-01``; all of several must hold.

``=`` and ``!=`` compare with one value or with any of several, separated by commas (``"..."`` keeps one together), ``*`` at a
value's end is any ending; a date that names a year, month or day is every moment of it. ``<``, ``<=``, ``>`` and ``>=`` compare
numbers with numbers and dates with dates. A passage without the key passes no filter of it.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal

from gnothi.errors import InvalidSetting
from gnothi.retrieval import terms
from gnothi.types import encodable

Operator = Literal["=", "!=", ">", ">=", "<", "<="]
OPERATORS: tuple[Operator, ...] = ("=", "!=", ">", ">=", "<", "<=")
_OTHER_NAMES = {"==": "=", "in": "=", "not in": "!="}
"""Of other frameworks."""
_LONGEST = 10_000
FORM = "expected KEY=VALUE, as in source=handbook.pdf or 'date>=2025-01' (operators: = != > >= < <=)"
_TEXT = re.compile(r"\s*([^=!<>]*[^=!<>\s])\s*(!=|>=|<=|==?|>|<)\s*(.*?)\s*", re.DOTALL)
_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
_LEAST, _MOST = "0" * 16, "f" * 16
_ANY_END = "z"
"""Behind the beginning of a term: behind every term that begins so."""

Span = tuple[str, str]
"""Terms from the first to the last, both included; one term where they are equal."""


@dataclass(frozen=True)
class Filter:
    """``values``: several only of ``=`` (any of them) and ``!=`` (none of them). Raises InvalidSetting."""

    key: str
    operator: Operator
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.key.strip() or self.operator not in OPERATORS:
            raise InvalidSetting(f"filter: got the key {self.key!r:.60} and the operator {self.operator!r:.20}, {FORM}.")
        if not self.values or not all(self.values):
            raise InvalidSetting(f"filter {str(self)!r:.80}: got no value, {FORM}.")
        if self.operator not in ("=", "!="):
            if len(self.values) > 1:
                raise InvalidSetting(f"filter {str(self)!r:.80}: got several values, expected one: only = and != take more.")
            if terms.as_number(self.values[0]) is None and terms.as_span(self.values[0]) is None:
                raise InvalidSetting(
                    f"filter {str(self)!r:.80}: got {self.values[0]!r:.60}, expected a number or a date such as 2025, 2025-01 "
                    "or 2025-01-31: text is compared by = and != only."
                )

    def __str__(self) -> str:
        """As it is given; the inverse of ``parse``."""
        return f"{self.key}{self.operator}{','.join(map(_quoted, self.values))}"

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """A passage has a term in one of them: then it passes, or, for ``!=``, does not. Letters with accents are the same,
        composed or not: names of files are either, by the system that they come from."""
        written = [form for value in self.values for form in (value, *(unicodedata.normalize(one, value) for one in _FORMS))]
        return tuple(dict.fromkeys(span for value in written for span in self._spans(value)))

    @property
    def negated(self) -> bool:
        """Whether a passage passes that has the key and none of the ``spans``."""
        return self.operator == "!="

    def passes(self, held: Collection[str]) -> bool:
        """Whether a passage with these terms passes."""
        matches = any(low <= term <= high for low, high in self.spans for term in held)
        return not matches and terms.key_term(self.key) in held if self.negated else matches

    def _spans(self, value: str) -> Iterable[Span]:
        number, dates = terms.as_number(value), terms.as_span(value)
        texts, numbers, written, moments = (terms.stem(kind, self.key) for kind in "tnmd")
        if self.operator in ("=", "!="):
            if value.endswith("*"):
                begin = texts + terms.prefix_code(value[:-1])
                yield begin, begin + _ANY_END
                return
            yield (texts + terms.text_code(value),) * 2
            if number is not None:
                yield (numbers + terms.number_code(number),) * 2
            if dates is not None:
                yield moments + terms.date_code(dates[0]), moments + terms.date_code(dates[1])
            return
        if number is not None:
            low, high = self._between(terms.number_code(number), terms.number_code(number))
            yield from ((kind + low, kind + high) for kind in (numbers, written) if low <= high)
        if dates is not None:
            low, high = self._between(*map(terms.date_code, dates))
            if low <= high:
                yield moments + low, moments + high

    def _between(self, first: str, last: str) -> Span:
        """The codes that compare so with what lies from ``first`` to ``last``."""
        match self.operator:
            case ">":
                return _next(last, 1), _MOST
            case ">=":
                return first, _MOST
            case "<":
                return _LEAST, _next(first, -1)
            case _:
                return _LEAST, last


Filters = tuple[Filter, ...]


def parse(text: str) -> Filter:
    """A filter as it is written. Raises InvalidSetting."""
    match = _TEXT.fullmatch(encodable(text[:_LONGEST]))
    if match is None or len(text) > _LONGEST:
        raise InvalidSetting(f"filter: got {text!r:.80}, {FORM}.")
    key, operator, rest = match.groups()
    values = next(csv.reader([rest.replace("\n", " ")], skipinitialspace=True, doublequote=True), [])
    return Filter(key, _operator(operator), tuple(value.strip() for value in values))


def as_filters(value: Any) -> Filters:
    """What a caller gives: nothing, a filter, or a list of them, each a text as for ``parse``, ``(key, operator, value)``, or
    an object with these three; a value may be text, a number, true or false, a date, or a list. Raises InvalidSetting."""
    if value is None:
        return ()
    if isinstance(value, str | Filter | Mapping) or _is_triple(value):
        return (_filter(value),)
    if not isinstance(value, Iterable):
        raise InvalidSetting(f"filters: got {value!r:.80}, {FORM}, or (key, operator, value), or a list of these.")
    return tuple(map(_filter, value))


def _filter(value: Any) -> Filter:
    if isinstance(value, Filter):
        return value
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, Mapping) and value.keys() == {"key", "operator", "value"}:
        value = (value["key"], value["operator"], value["value"])
    if not isinstance(value, Sequence) or len(value) != 3 or not isinstance(value[0], str) or not isinstance(value[1], str):
        raise InvalidSetting(f"filter: got {value!r:.80}, {FORM}, or the three as (key, operator, value).")
    key, operator, operand = value
    values = operand if isinstance(operand, Sequence | set | frozenset) and not isinstance(operand, str) else (operand,)
    return Filter(encodable(key), _operator(operator), tuple(map(_value, values)))


def _is_triple(value: Any) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == 3
        and value[1] in (*OPERATORS, *_OTHER_NAMES)
        and isinstance(value[0], str)
    )


def _operator(name: str) -> Any:
    return _OTHER_NAMES.get(name, name)


def _value(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str | int | float):
        raise InvalidSetting(f"filter: got the value {value!r:.60}, expected text, a number, true or false, or a date.")
    return encodable(terms.as_text(value))


def _quoted(value: str) -> str:
    plain = value == value.strip() and not set(value) & set(',"\n')
    return value if plain else '"' + value.replace('"', '""') + '"'


def _next(code: str, step: int) -> str:
    """The code before or after one; before the first and after the last there is none, and nothing lies between."""
    number = int(code, 16) + step
    return f"{number:016x}" if 0 <= number < 1 << 64 else ("~" if step > 0 else "")
