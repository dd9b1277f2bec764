"""One question per line, in the keys people use: ``{"question": ..., "answers": [...], "id"?, "choices"?, "kind"?, ...}``.

A table with columns of these names is read, too, with an answer or a list of answers in a cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gnothi.datasets.formats.choice import by_label
from gnothi.datasets.records import Record, reads
from gnothi.types import Question
from gnothi.yes_or_no import asks_yes_or_no

IDS = ("id", "_id", "qid", "question_id")
QUESTIONS = ("question", "query", "question_text", "user_input", "problem", "prompt")
ANSWERS = (
    "answers", "answer", "gold", "golden_answers", "gold_answers", "gold_answer", "references", "reference_answers",
    "reference_answer", "reference", "ground_truths", "ground_truth", "correct_answer", "expected_answer", "short_answers",
)  # fmt: skip
ALIASES = ("aliases", "answer_aliases")
_NUMBERED = re.compile(r"answer_?\d{1,2}")
_OPTION = re.compile(r"(?:option|choice|answer)?_?([a-h])")
KINDS = ("kind", "type")
_SAID = {"true": "yes", "false": "no"}  # of cells, which have no other way to say JSON's true and false


def recognises(first: Mapping[str, Any]) -> bool:
    asks = any(isinstance(first.get(key), str) for key in QUESTIONS)
    return asks and (any(key in first for key in ANSWERS) or bool(_numbered(first)))


@reads(
    "jsonl",
    "one object per line: question, answers (or answer, gold), and optionally id, choices, kind, answerable",
    recognises,
    particular=0,
)
def generic(record: Record) -> Question:
    """Keys without a meaning here become metadata, and so do those of an object under ``metadata`` (which win).

    With ``choices``, an answer may be the label of one: A is the first. ``answerable`` false: to abstain is right. True and
    False in a table are yes and no to a question that asks so by its wording, else text: they may be a title."""
    options = _options(record)
    used = {key for keys in (IDS, QUESTIONS, ANSWERS, ALIASES, KINDS) if (key := record.first(keys))}
    used |= {*_numbered(record.data), *options, "choices", "metadata"}
    metadata = {key: value for key, value in record.data.items() if key not in used}
    nested = record.data.get("metadata") or {}
    if not isinstance(nested, Mapping):
        raise record.invalid(f"metadata = {nested!r:.60}", "an object")
    alias_key = record.first(ALIASES)
    answers = _answers(record) + (record.answers(alias_key) if alias_key else ())
    text = record.text(*QUESTIONS)
    kind_key = record.first(KINDS)
    choices = tuple(map(str, options.values())) or record.texts("choices")
    if choices:
        _check_choice(record, choices, bool(options))
    elif record.cells and asks_yes_or_no(text):
        answers = tuple(_SAID.get(answer.lower(), answer) for answer in answers)
    metadata.update(nested)
    if not isinstance(metadata.get("answerable", True), bool):
        raise record.invalid(f"answerable = {metadata['answerable']!r:.60}", "true or false")
    return Question(
        id=record.identity(*IDS),
        text=text,
        answers=tuple(dict.fromkeys(by_label(answer, choices) for answer in answers)),
        choices=choices,
        kind=record.text(kind_key) if kind_key and record.data[kind_key] else "",
        metadata=metadata,
    )


def _numbered(data: Mapping[str, Any]) -> list[str]:
    """The columns of a table that has a column for each answer (answer_0, answer_1 ...)."""
    return [] if any(key in data for key in ANSWERS) else [key for key in data if _NUMBERED.fullmatch(key.lower())]


def _answers(record: Record) -> tuple[str, ...]:
    numbered = _numbered(record.data)
    if not numbered:
        return record.answers(*ANSWERS)
    return tuple(dict.fromkeys(answer for key in numbered for answer in record.answers(key)))


def _options(record: Record) -> dict[str, str]:
    """Columns that are the choices: A, B ... or option_a, option_b ..., in this order."""
    keys = {match[1]: key for key in record.data if (match := _OPTION.fullmatch(key.lower()))}
    letters = "abcdefgh"[: len(keys)]
    if len(keys) < 2 or sorted(keys) != list(letters):
        return {}
    texts = {keys[letter]: record.data[keys[letter]] for letter in letters}
    return {key: str(text).strip() for key, text in texts.items() if text is not None and str(text).strip()}


def _check_choice(record: Record, choices: Sequence[str], exact: bool) -> None:
    """Raises InvalidInput where the gold answer may be a choice's number, counted from 0 or 1; ``exact``: for all that is no
    choice."""
    key = record.first(ANSWERS)
    value = record.data[key] if key else None
    for answer in value if isinstance(value, list) else [value]:
        number = isinstance(answer, int) and not isinstance(answer, bool)
        text = by_label(str(answer).strip(), choices)
        if answer not in (None, "") and text not in choices and (number or exact):
            raise record.invalid(f"{key} = {answer!r:.60} with choices", "the text of a choice, or its letter (A is the first)")


def unanswered(record: Record) -> Record:
    """The record, with no answer where it says nothing of any."""
    asks = any(isinstance(record.data.get(key), str) for key in QUESTIONS)
    answered = record.first(ANSWERS) is not None or _numbered(record.data)
    return replace(record, data={**record.data, "answers": []}) if asks and not answered else record
