"""OpenBookQA (Mihaylov et al. 2018): elementary science with four choices; the official lines and the hub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets import choices
from gnothi.datasets.records import Format, Record
from gnothi.types import Question

STEM = "question_stem"


def question(record: Record) -> Question:
    """Metadata's ``fact`` is the fact of the open book that the question rests on, where the file (its "additional" form) has
    it."""
    flat = STEM in record.data
    inside = record.data if flat else choices.stem(record)
    offered = choices.read(record, inside.get("choices"), "choices")
    fact = record.data.get("fact1")
    return Question(
        id=record.identity("id"),
        text=record.text(STEM) if flat else inside["stem"].strip(),
        answers=offered.right(record, "answerKey"),
        choices=offered.texts,
        kind="choice",
        metadata={"fact": fact} if isinstance(fact, str) else {},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    """The AI2 Reasoning Challenge has the same lines, and is read alike."""
    inside = first.get("question")
    nested = isinstance(inside, Mapping) and {"stem", "choices"} <= inside.keys()
    return "id" in first and (nested or {STEM, "choices"} <= first.keys())


FORMAT = Format("openbookqa", "OpenBookQA: the official lines (question: stem, choices; answerKey)", recognises, question)
