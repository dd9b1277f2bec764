"""TriviaQA (Joshi et al. 2017): the official files of the reading comprehension and the unfiltered sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_KEYS = {
    "Answer": ("Value", "Aliases", "HumanAnswers", "NormalizedAliases"),
    "answer": ("value", "aliases", "human_answers", "normalized_aliases"),  # as the hub spells them
}
_UNKNOWN = "<unk>"  # the hub's test set


def question(record: Record) -> Question:
    """Any alias counts as right, also in TriviaQA's own normal form (NormalizedAliases), which turns punctuation into spaces
    where ours drops it. Evidence documents are not read. A question without an answer (the test set) has no gold answer."""
    key = record.first(tuple(_KEYS)) or "Answer"
    given, names = record.data.get(key), _KEYS[key]
    if given is not None and (not isinstance(given, Mapping) or names[0] not in given):
        raise record.invalid(f"{key} = {given!r:.60}", f'an object with "{names[0]}" and "{names[1]}"')
    answer = Record(given or {}, record.place, record.number)
    found = [text for name in names if name in answer.data for text in answer.answers(name)]
    if given is not None and not found:
        raise record.invalid(f"an {key} without text", f'text under its "{names[0]}"')
    source = next((one for name in ("QuestionSource", "question_source") if isinstance(one := record.data.get(name), str)), "")
    return Question(
        id=record.identity("QuestionId", "question_id"),
        text=record.text("Question", "question"),
        answers=tuple(dict.fromkeys(text for text in found if text != _UNKNOWN)),
        metadata={"source": source} if source else {},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    given = first.get("answer")
    hub = isinstance(given, Mapping) and {"value", "aliases"} <= given.keys()
    return {"Question", "QuestionId"} <= first.keys() or ({"question", "question_id"} <= first.keys() and hub)


FORMAT = Format(
    "triviaqa",
    "TriviaQA: the official files (Data: Question, QuestionId, Answer), and the hub's",
    recognises,
    question,
    container="Data",
)
