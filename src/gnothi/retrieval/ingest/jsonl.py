"""JSONL: one passage a line, ``{"_id", "title", "text"}`` as in BEIR or ``{"id", "title", "text"}``; other flat keys are
metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.flat import flat
from gnothi.retrieval.ingest.base import Checkpoint, Step
from gnothi.retrieval.ingest.lines import lines, parse_json, record_steps
from gnothi.types import Passage

LONGEST_ID = 500
_OWN = frozenset(("_id", "id", "title", "text"))


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:
    """A line without an id gets ``key#line number``."""
    dropped: set[str] = set()
    yield from record_steps(lines(path, start), words, lambda line, text: _passage(text, f"{key}#{line.number}", dropped))
    if dropped:
        yield Step(notice=f"has keys that hold lists, which are left out: {', '.join(sorted(dropped))}")


def _passage(text: str, default_id: str, dropped: set[str]) -> Passage:
    record = parse_json(text)
    if not isinstance(record, dict):
        raise ValueError(f"got {_kind(record)}, expected an object with id, title and text")
    metadata, left = flat(record, _OWN)
    dropped.update(left)
    text, title = _string(record, "text", required=True), _string(record, "title", required=False)
    return Passage(_id(record, default_id), text, title, metadata)


def _id(record: dict[str, object], default: str) -> str:
    value = record.get("_id", record.get("id"))
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"its id is {_kind(value)}, expected a string or a whole number")
    return check_id(str(value))


def check_id(passage_id: str) -> str:
    if not passage_id or len(passage_id) > LONGEST_ID:
        raise ValueError(f"its id has {len(passage_id)} characters, expected 1 to {LONGEST_ID}")
    return passage_id


def _string(record: dict[str, object], name: str, required: bool) -> str:
    value = record.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        found = (
            f"its {name!r} is {_kind(value)}" if name in record else f"no {name!r} (it has {', '.join(record) or 'nothing'})"
        )
        raise ValueError(f"{found}, expected a string")
    return value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names[type(value)]
