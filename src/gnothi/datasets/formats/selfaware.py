"""SelfAware (Yin et al. 2023): questions that can be answered among questions that nobody can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

ANSWERABLE, UNANSWERABLE = "answerable", "unanswerable"


def question(record: Record) -> Question:
    """``kind`` and metadata's ``answerable`` say which sort it is; to abstain is right where there is no answer."""
    answerable = record.data.get("answerable")
    if not isinstance(answerable, bool):
        raise record.invalid(f"answerable = {answerable!r:.60}", "true or false")
    answers = record.answers("answer")
    if answerable and not answers:
        raise record.invalid("an answerable question without an answer", "a list of answers, or answerable false")
    if answers and not answerable:
        raise record.invalid(f"answerable = False with answer = {answers!r:.60}", "answer null, or answerable true")
    source = record.data.get("source")
    return Question(
        id=record.identity("question_id"),
        text=record.text("question"),
        answers=answers,
        kind=ANSWERABLE if answerable else UNANSWERABLE,
        metadata={"answerable": answerable, **({"source": source} if isinstance(source, str) else {})},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return {"question_id", "question", "answer", "answerable"} <= first.keys()


FORMAT = Format(
    "selfaware",
    "SelfAware: the official file (example: question_id, question, answer, answerable)",
    recognises,
    question,
    container="example",
)
