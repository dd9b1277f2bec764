"""CommonsenseQA (Talmor et al. 2019): five choices around a concept of ConceptNet; the official lines and the hub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets import choices
from gnothi.datasets.records import Format, Record
from gnothi.types import Question

CONCEPT = "question_concept"


def question(record: Record) -> Question:
    """Metadata's ``concept`` is the concept that the question was written about."""
    nested = isinstance(record.data.get("question"), Mapping)
    inside = choices.stem(record) if nested else record.data
    offered = choices.read(record, inside.get("choices"), "choices")
    concept = inside.get(CONCEPT)
    return Question(
        id=record.identity("id"),
        text=inside["stem"].strip() if nested else record.text("question"),
        answers=offered.right(record, "answerKey"),
        choices=offered.texts,
        kind="choice",
        metadata={"concept": concept} if isinstance(concept, str) else {},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    inside = first.get("question")
    return "id" in first and (
        {CONCEPT, "question", "choices"} <= first.keys() or (isinstance(inside, Mapping) and CONCEPT in inside)
    )


FORMAT = Format(
    "commonsenseqa",
    "CommonsenseQA: the official lines (question_concept, choices, answerKey)",
    recognises,
    question,
    particular=2,
)
