"""Metadata as terms: what a filter asks of a passage is whether it has a term, or one between two others, on every backend.

A term is ``KIND KEY x VALUE``, key and text in hexadecimal: no store has to escape any of it, and terms of one key and kind
stand in the order of their values. Kinds: ``k`` the key alone, ``t`` text, ``n`` a number, ``m`` a text that reads as a number,
``d`` what reads as a date (a four-digit number is a year, too).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from gnothi.types import NO_METADATA, Metadata, Value, encodable

_LONGEST = 200
"""Bytes of a text that stand in its term; of a longer one, a digest follows."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r" ?(Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
_MICROSECOND = timedelta(microseconds=1)
_BEGIN, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def terms(metadata: Mapping[str, Value]) -> list[str]:
    """Every term of a passage."""
    return [term for key, value in metadata.items() for term in _terms(key, value)]


@lru_cache(maxsize=4096, typed=True)
def _terms(key: str, value: Value) -> tuple[str, ...]:
    text = as_text(value)
    result = [key_term(key), stem("t", key) + text_code(text)]
    if not isinstance(value, bool):
        if (number := as_number(text)) is not None:
            result.append(stem("m" if isinstance(value, str) else "n", key) + number_code(number))
        if (span := as_span(text)) is not None:
            result.append(stem("d", key) + date_code(span[0]))
    return tuple(result)


def key_term(key: str) -> str:
    return "k" + _hex(key)


def key_of(term: str) -> str:
    """The inverse of ``key_term``."""
    return bytes.fromhex(term[1:]).decode()


def stem(kind: str, key: str) -> str:
    """How all terms of a kind begin."""
    return f"{kind}{_hex(key)}x"


def as_text(value: Value) -> str:
    """As it is written in a filter."""
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def text_code(text: str) -> str:
    code = _hex(text)
    if len(code) <= 2 * _LONGEST:
        return code
    return f"{code[: 2 * _LONGEST]}y{blake2b(text.encode(), digest_size=16).hexdigest()}"


def prefix_code(text: str) -> str:
    """How the code of every text begins that begins with this one (and is no longer than a term holds)."""
    return _hex(text)


def as_number(text: str) -> float | None:
    """The number that the whole text is, as a float of 64 bits."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if abs(number) < float("inf") else None


def number_code(number: float) -> str:
    """Sixteen digits, in the order of the numbers (IEEE 754, the sign turned around)."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))
    return f"{bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63):016x}"


def as_span(text: str) -> tuple[datetime, datetime] | None:
    """The first and the last microsecond of a date that may be a year, a month, a day or a time; without a zone it is UTC. None
    for what is none, or lies outside of the years 1 to 9999."""
    if not (match := _DATE.fullmatch(text)):
        return None
    year, month, day, hour, minute, second, part, zone = match.groups()
    micro = (part or "")[:6].ljust(6, "0")
    iso = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}.{micro}{zone or 'Z'}"
    try:
        begin = datetime.fromisoformat(iso).astimezone(UTC)
        if day is None:
            months = int(year) * 12 + int(month or 1) - 1 + (1 if month else 12)
            end = datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC) - _MICROSECOND
        else:
            length = timedelta(days=1) if hour is None else timedelta(minutes=1) if second is None else timedelta(seconds=1)
            end = begin if part else begin + length - _MICROSECOND
    except (ValueError, OverflowError):
        return (begin, _END) if year == "9999" and day is None and month in (None, "12") else None
    return begin, end


def date_code(moment: datetime) -> str:
    """Sixteen digits, in the order of the moments."""
    return f"{(moment - _BEGIN) // _MICROSECOND:016x}"


def _hex(text: str) -> str:
    return encodable(text).encode().hex()


# What is kept of a record or of another framework's document as metadata: its flat values, under the names that they have.

_TAKEN_UP = ("metadata", "meta")
"""Objects whose keys stand beside those of the record, as in BEIR; those of others are ``OBJECT.KEY``."""


def flat(record: Mapping[Any, Any], without: frozenset[str] = frozenset()) -> tuple[Metadata, list[str]]:
    """Metadata, and the keys that hold neither text, numbers, dates, true, false nor nothing, and are left out. Of two with one
    name the outer one stays. Keys in ``without`` are something else."""
    if record.keys() <= without:
        return NO_METADATA, []
    values: dict[str, Value] = {}
    dropped: list[str] = []
    for key, value in _pairs(record, ""):
        if key in without or value is None:
            continue
        if isinstance(value, date):  # and a time
            value = value.isoformat()
        if not isinstance(value, Value):
            dropped.append(key)
        elif key:
            values.setdefault(key, value)
    return (Metadata(values) if values else NO_METADATA), dropped


def _pairs(record: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Outer keys first."""
    inner = [(key, value) for key, value in record.items() if isinstance(value, Mapping)]
    yield from ((f"{prefix}{key}", value) for key, value in record.items() if not isinstance(value, Mapping))
    for key, value in inner:
        yield from _pairs(value, prefix if key in _TAKEN_UP else f"{prefix}{key}.")
