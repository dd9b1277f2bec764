"""MMLU (Hendrycks et al. 2021): four choices, the right one by its number, on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """The number counts from 0. ``kind`` is choice; metadata holds the ``subject``."""
    choices = record.texts("choices")
    number = record.data.get("answer")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(choices):
        raise record.invalid(f"answer = {number!r:.40} with {len(choices)} choices", "the number of a choice, the first is 0")
    return Question(
        id=record.identity("id"),
        text=record.text("question"),
        answers=(choices[number],),
        choices=choices,
        kind="choice",
        metadata={"subject": str(record.data.get("subject"))},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    number = first.get("answer")
    return {"question", "subject", "choices"} <= first.keys() and isinstance(number, int) and not isinstance(number, bool)


FORMAT = Format("mmlu", "MMLU: the hub's rows (question, subject, choices, answer: a number from 0)", recognises, question)
