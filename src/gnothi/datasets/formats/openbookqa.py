"""OpenBookQA (Mihaylov et al. 2018): elementary science with four choices; the official lines and the hub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets import choices
from gnothi.datasets.records import Format, Record
from gnothi.types import Question

STEM = "question_stem"
CONCEPT = "question_concept"  # CommonsenseQA's


def question(record: Record) -> Question:
    """Metadata's ``fact`` is the fact of the open book that the question rests on, where the file (its "additional" form) has
    it."""
    key = STEM if STEM in record.data else "question"
    flat = isinstance(record.data.get(key), str) and "choices" in record.data
    inside = record.data if flat else choices.stem(record)
    offered = choices.read(record, inside.get("choices"), "choices")
    fact = record.data.get("fact1")
    return Question(
        id=record.identity("id"),
        text=record.text(key) if flat else inside["stem"].strip(),
        answers=offered.right(record, "answerKey"),
        choices=offered.texts,
        kind="choice",
        metadata={"fact": fact} if isinstance(fact, str) else {},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    """The AI2 Reasoning Challenge and QASC have the same lines, and are read alike."""
    inside = first.get("question")
    nested = isinstance(inside, Mapping) and {"stem", "choices"} <= inside.keys()
    flat = STEM in first or (isinstance(inside, str) and "answerKey" in first and CONCEPT not in first)
    return "id" in first and (nested or ("choices" in first and flat))


FORMAT = Format(
    "openbookqa",
    "OpenBookQA, ARC, QASC: the official lines (question: stem, choices; answerKey), and the hub's",
    recognises,
    question,
)
