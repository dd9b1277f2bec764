"""2WikiMultiHopQA (Ho et al. 2020): HotpotQA's keys and the chain of triples that leads to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gnothi.datasets.formats import hotpotqa
from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """As HotpotQA's; metadata's ``evidences`` are triples of subject, relation, object. ``kind`` is compositional, comparison,
    bridge_comparison or inference. The aliases that the official scorer adds stand in a file of their own and are not read."""
    read = hotpotqa.question(record)
    return replace(read, metadata={**read.metadata, "evidences": _triples(record)})


def _triples(record: Record) -> tuple[tuple[str, ...], ...]:
    given = record.data.get("evidences") or []
    shaped = isinstance(given, list) and all(isinstance(item, list) and len(item) == 3 for item in given)
    if not shaped:
        raise record.invalid(f"evidences = {given!r:.60}", "a list of [subject, relation, object]")
    return tuple(tuple(map(str, item)) for item in given)


def recognises(first: Mapping[str, Any]) -> bool:
    return {"question", "context", "evidences"} <= first.keys()


FORMAT = Format("2wikimultihopqa", "2WikiMultiHopQA: the official files (with evidences)", recognises, question, particular=2)
