"""HotpotQA (Yang et al. 2018): the official files, and lines that hold each question's passages with a ``supporting`` flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.formats.generic import ALIASES, ANSWERS, IDS
from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """The passages stay in the file (index it to search them); metadata's ``supporting`` names the titles that are needed."""
    data = record.data
    alias_key = record.first(ALIASES)
    answers = record.answers(*ANSWERS) + (record.answers(alias_key) if alias_key else ())
    metadata: dict[str, Any] = {"supporting": _supporting(record)}
    if isinstance(data.get("level"), str):
        metadata["level"] = data["level"]
    return Question(
        id=record.identity(*IDS),
        text=record.text("question"),
        answers=tuple(dict.fromkeys(answers)),
        kind=record.text("type") if data.get("type") else "",
        metadata=metadata,
    )


def _supporting(record: Record) -> tuple[str, ...]:
    try:
        if "passages" in record.data:
            titles = [passage["title"] for passage in record.data["passages"] if passage.get("supporting")]
        else:
            facts = record.data.get("supporting_facts") or []
            titles = facts["title"] if isinstance(facts, Mapping) else [title for title, _ in facts]  # the hub's shape, too
    except (TypeError, KeyError, ValueError, AttributeError):
        raise record.invalid("passages of another shape", "passages with title and supporting, or supporting_facts") from None
    return tuple(dict.fromkeys(map(str, titles)))


def recognises(first: Mapping[str, Any]) -> bool:
    passages = first.get("passages")
    flagged = isinstance(passages, list) and bool(passages) and isinstance(passages[0], dict) and "supporting" in passages[0]
    return "question" in first and (flagged or {"supporting_facts", "context"} <= first.keys())


FORMAT = Format(
    "hotpotqa",
    "HotpotQA: the official files, or lines with passages and supporting flags",
    recognises,
    question,
)
