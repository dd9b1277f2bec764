"""One question per line, in the keys people use: ``{"question": ..., "answers": [...], "id"?, "choices"?, "kind"?, ...}``.

A CSV file with columns of these names is read, too, with one answer a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gnothi.datasets.choices import by_label
from gnothi.datasets.records import Format, Record
from gnothi.types import Question

IDS = ("id", "_id", "qid", "question_id")
QUESTIONS = ("question", "query")
ANSWERS = ("answers", "answer", "gold", "golden_answers")
ALIASES = ("aliases", "answer_aliases")
KINDS = ("kind", "type")


def question(record: Record) -> Question:
    """Keys without a meaning here become metadata, and so do those of an object under ``metadata`` (which win).

    With ``choices``, an answer may be the label of one: A is the first. ``answerable`` false: to abstain is right."""
    used = {key for keys in (IDS, QUESTIONS, ANSWERS, ALIASES, KINDS) if (key := record.first(keys))}
    metadata = {key: value for key, value in record.data.items() if key not in used | {"choices", "metadata"}}
    nested = record.data.get("metadata") or {}
    if not isinstance(nested, Mapping):
        raise record.invalid(f"metadata = {nested!r:.60}", "an object")
    alias_key = record.first(ALIASES)
    answers = record.answers(*ANSWERS) + (record.answers(alias_key) if alias_key else ())
    kind_key = record.first(KINDS)
    choices = record.texts("choices")
    metadata.update(nested)
    if not isinstance(metadata.get("answerable", True), bool):
        raise record.invalid(f"answerable = {metadata['answerable']!r:.60}", "true or false")
    return Question(
        id=record.identity(*IDS),
        text=record.text(*QUESTIONS),
        answers=tuple(dict.fromkeys(by_label(answer, choices) for answer in answers)),
        choices=choices,
        kind=record.text(kind_key) if kind_key and record.data[kind_key] else "",
        metadata=metadata,
    )


def unanswered(record: Record) -> Record:
    """The record, with no answer where it says nothing of any."""
    asks = any(isinstance(record.data.get(key), str) for key in QUESTIONS)
    return replace(record, data={**record.data, "answers": []}) if asks and record.first(ANSWERS) is None else record


def recognises(first: Mapping[str, Any]) -> bool:
    return any(isinstance(first.get(key), str) for key in QUESTIONS) and any(key in first for key in ANSWERS)


FORMAT = Format(
    "jsonl",
    "one object per line: question, answers (or answer, gold), and optionally id, choices, kind, answerable",
    recognises,
    question,
    particular=0,
)
