"""TruthfulQA (Lin et al. 2022): questions that invite a common falsehood, in the official table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

COLUMNS = ("Question", "Best Answer", "Correct Answers", "Incorrect Answers")


def question(record: Record) -> Question:
    """Gold answers are the best and the correct ones; metadata holds ``incorrect_answers``, ``category`` and ``source``.
    ``kind`` is adversarial or non_adversarial. The id is the row's number, for the table has none."""
    answers = (record.text("Best Answer"), *_listed(record, "Correct Answers"))
    extra = {
        name.lower(): value for name in ("Category", "Source") if isinstance(value := record.data.get(name), str) and value
    }
    kind = record.data.get("Type")
    return Question(
        id=record.identity("id"),
        text=record.text("Question"),
        answers=tuple(dict.fromkeys(answers)),
        kind=kind.strip().lower().replace("-", "_") if isinstance(kind, str) else "",
        metadata={**extra, "incorrect_answers": _listed(record, "Incorrect Answers")},
    )


def _listed(record: Record, key: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part for text in record.text(key).split(";") if (part := " ".join(text.split()))))
    if not found:
        raise record.invalid(f"{key} = {record.data[key]!r:.60}", "answers with semicolons between them")
    return found


def recognises(first: Mapping[str, Any]) -> bool:
    return first.keys() >= set(COLUMNS)


FORMAT = Format("truthfulqa", f"TruthfulQA: the official table (CSV: {', '.join(COLUMNS)})", recognises, question, table=True)
