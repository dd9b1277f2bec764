"""TriviaQA (Joshi et al. 2017): the official files of the reading comprehension and the unfiltered sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_VALUES = ("Value", "Aliases", "HumanAnswers", "NormalizedAliases")


def question(record: Record) -> Question:
    """Any alias counts as right, also in TriviaQA's own normal form (NormalizedAliases), which turns punctuation into spaces
    where ours drops it. Evidence documents are not read. A question without an answer (the test set) has no gold answer."""
    given = record.data.get("Answer")
    if given is not None and (not isinstance(given, Mapping) or "Value" not in given):
        raise record.invalid(f"Answer = {given!r:.60}", 'an object with "Value" and "Aliases"')
    answer = Record(given or {}, record.place, record.number)
    found = [text for key in _VALUES if key in answer.data for text in answer.answers(key)]
    if given is not None and not found:
        raise record.invalid("an Answer without text", 'text under its "Value"')
    source = record.data.get("QuestionSource")
    return Question(
        id=record.identity("QuestionId"),
        text=record.text("Question"),
        answers=tuple(dict.fromkeys(found)),
        metadata={"source": source} if isinstance(source, str) and source else {},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return {"Question", "QuestionId"} <= first.keys()


FORMAT = Format(
    "triviaqa", "TriviaQA: the official files (Data: Question, QuestionId, Answer)", recognises, question, container="Data"
)
