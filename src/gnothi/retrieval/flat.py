"""What is kept of a record or of another framework's document as metadata: its flat values, under the names that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from gnothi.types import NO_METADATA, Metadata, Value

_TAKEN_UP = ("metadata", "meta")
"""Objects whose keys stand beside those of the record, as in BEIR; those of others are ``OBJECT.KEY``."""


def flat(record: Mapping[Any, Any], without: frozenset[str] = frozenset()) -> tuple[Metadata, list[str]]:
    """Metadata, and the keys that hold neither text, numbers, dates, true, false nor nothing, and are left out. Of two with one
    name the outer one stays. Keys in ``without`` are something else."""
    if record.keys() <= without:
        return NO_METADATA, []
    kept: dict[str, Value] = {}
    dropped: list[str] = []
    for key, value in _pairs(record, ""):
        if key in without or value is None:
            continue
        if isinstance(value, date):  # and a time
            value = value.isoformat()
        if not isinstance(value, Value):
            dropped.append(key)
        elif key:
            kept.setdefault(key, value)
    return (Metadata(kept) if kept else NO_METADATA), dropped


def _pairs(record: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Outer keys first."""
    inner = [(key, value) for key, value in record.items() if isinstance(value, Mapping)]
    yield from ((f"{prefix}{key}", value) for key, value in record.items() if not isinstance(value, Mapping))
    for key, value in inner:
        yield from _pairs(value, prefix if key in _TAKEN_UP else f"{prefix}{key}.")
