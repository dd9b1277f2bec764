"""Multiple choice: the shapes in which official files list choices, the label of the right one, and the data sets."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.datasets.records import Record, reads
from gnothi.types import Question

_EXPECTED = (
    'choices as [{"label": "A", "text": ...}, ...], {"label": [...], "text": [...]}, {"A": ..., "B": ...} or '
    '["first", "second"]'
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Labels and texts, in the file's order."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]

    def right(self, record: Record, key: str) -> tuple[str, ...]:
        """The text of the choice whose label stands under ``key``: no gold answer where that is missing, null or empty, as in
        the official files of questions whose answers are kept back."""
        label = record.data.get(key)
        if label is None or label == "":
            return ()
        if isinstance(label, str) and label.strip() in self.labels:
            return (self.texts[self.labels.index(label.strip())],)
        raise record.invalid(f"{key} = {label!r:.60}", f"the label of a choice: {', '.join(self.labels)}")

    def question(self, record: Record, text: str, answers: tuple[str, ...], **metadata: object) -> Question:
        """With the metadata that are texts."""
        known = {name: value for name, value in metadata.items() if isinstance(value, str)}
        return Question(record.identity("id"), text, answers, self.texts, "choice", known)


def read(record: Record, value: Any, key: str) -> Choices:
    """The choices in any of the three shapes; ``key`` names them in complaints."""
    labels: Sequence[Any]
    texts: list[Any] | tuple[Any, ...]
    if isinstance(value, list) and all(isinstance(item, Mapping) and {"label", "text"} <= item.keys() for item in value):
        labels, texts = [item["label"] for item in value], [item["text"] for item in value]
    elif isinstance(value, list) and len(value) <= 26 and all(isinstance(item, str) for item in value):
        labels, texts = string.ascii_uppercase[: len(value)], value
    elif isinstance(value, Mapping) and isinstance(value.get("label"), list) and isinstance(value.get("text"), list):
        labels, texts = value["label"], value["text"]
    elif isinstance(value, Mapping):
        labels, texts = list(value), list(value.values())
    else:
        raise record.invalid(f"{key} = {value!r:.60}", _EXPECTED)
    shaped = len(labels) == len(texts) and all(isinstance(item, str) and item.strip() for item in (*labels, *texts))
    if not shaped:
        raise record.invalid(f"{key} = {value!r:.60}", _EXPECTED)
    choices = Choices(tuple(label.strip() for label in labels), tuple(" ".join(text.split()) for text in texts))
    if len(choices.labels) < 2 or len(set(choices.labels)) < len(choices.labels):
        raise record.invalid(f"{key} with the labels {', '.join(choices.labels) or '(none)'}", "two or more different labels")
    return choices


def stem(record: Record, key: str = "question") -> Mapping[str, Any]:
    """The object of stem and choices that AllenAI's files keep under ``question``."""
    value = record.data.get(key)
    if not isinstance(value, Mapping) or not isinstance(value.get("stem"), str) or not value["stem"].strip():
        raise record.invalid(f"{key} = {value!r:.60}", 'an object with "stem" (text) and "choices"')
    return value


def by_label(answer: str, choices: Sequence[str]) -> str:
    """The choice that a capital letter stands for (A is the first), unless it is a choice itself; else ``answer``."""
    if answer in choices or len(answer) != 1:
        return answer
    position = string.ascii_uppercase.find(answer)
    return choices[position] if 0 <= position < len(choices) else answer


# CommonsenseQA (Talmor et al. 2019): five choices around a concept of ConceptNet; the official lines and the hub's.

_CONCEPT = "question_concept"


def is_commonsenseqa(first: Mapping[str, Any]) -> bool:
    inside = first.get("question")
    return "id" in first and (
        {_CONCEPT, "question", "choices"} <= first.keys() or (isinstance(inside, Mapping) and _CONCEPT in inside)
    )


@reads(
    "commonsenseqa", "CommonsenseQA: the official lines (question_concept, choices, answerKey)", is_commonsenseqa, particular=2
)
def commonsenseqa(record: Record) -> Question:
    """Metadata's ``concept`` is the concept that the question was written about."""
    nested = isinstance(record.data.get("question"), Mapping)
    inside = stem(record) if nested else record.data
    offered = read(record, inside.get("choices"), "choices")
    text = inside["stem"].strip() if nested else record.text("question")
    return offered.question(record, text, offered.right(record, "answerKey"), concept=inside.get(_CONCEPT))


# MedQA (Jin et al. 2021): questions of medical licensing examinations, in the official lines of four or five options.


def is_medqa(first: Mapping[str, Any]) -> bool:
    return {"question", "options"} <= first.keys() and bool({"answer_idx", "answer"} & first.keys())


@reads("medqa", "MedQA: the official lines (question, options, answer, answer_idx)", is_medqa)
def medqa(record: Record) -> Question:
    """Metadata's ``exam`` is the file's ``meta_info`` (step1, ...). The files name the right option by its letter
    (``answer_idx``) and its text (``answer``); where both are there they must agree."""
    offered = read(record, record.data.get("options"), "options")
    by_letter = offered.right(record, "answer_idx")
    answers = by_letter or tuple(by_label(" ".join(text.split()), offered.texts) for text in record.answers("answer"))
    if by_letter and "answer" in record.data and " ".join(record.text("answer").split()) != by_letter[0]:
        raise record.invalid(
            f"answer = {record.data['answer']!r:.60} with answer_idx = {record.data['answer_idx']!r}",
            f"the option of that letter: {by_letter[0]!r:.60}",
        )
    if any(answer not in offered.texts for answer in answers):
        raise record.invalid(f"answer = {record.data['answer']!r:.60}", "one of the options")
    return offered.question(record, record.text("question"), answers, exam=record.data.get("meta_info"))


# MMLU (Hendrycks et al. 2021): four choices, the right one by its number, on the hub.


def is_mmlu(first: Mapping[str, Any]) -> bool:
    number = first.get("answer")
    return {"question", "subject", "choices"} <= first.keys() and isinstance(number, int) and not isinstance(number, bool)


@reads("mmlu", "MMLU: the hub's rows (question, subject, choices, answer: a number from 0)", is_mmlu)
def mmlu(record: Record) -> Question:
    """The number counts from 0. ``kind`` is choice; metadata holds the ``subject``."""
    choices = record.texts("choices")
    number = record.data.get("answer")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(choices):
        raise record.invalid(f"answer = {number!r:.40} with {len(choices)} choices", "the number of a choice, the first is 0")
    subject = {"subject": str(record.data.get("subject"))}
    return Question(record.identity("id"), record.text("question"), (choices[number],), choices, "choice", subject)


# OpenBookQA (Mihaylov et al. 2018): elementary science with four choices; the official lines and the hub's.

_STEM = "question_stem"


def is_openbookqa(first: Mapping[str, Any]) -> bool:
    """The AI2 Reasoning Challenge and QASC have the same lines, and are read alike."""
    inside = first.get("question")
    nested = isinstance(inside, Mapping) and {"stem", "choices"} <= inside.keys()
    flat = _STEM in first or (isinstance(inside, str) and "answerKey" in first and _CONCEPT not in first)
    return "id" in first and (nested or ("choices" in first and flat))


@reads(
    "openbookqa", "OpenBookQA, ARC, QASC: the official lines (question: stem, choices; answerKey), and the hub's", is_openbookqa
)
def openbookqa(record: Record) -> Question:
    """Metadata's ``fact`` is the fact of the open book that the question rests on, where the file (its "additional" form) has
    it."""
    key = _STEM if _STEM in record.data else "question"
    flat = isinstance(record.data.get(key), str) and "choices" in record.data
    inside = record.data if flat else stem(record)
    offered = read(record, inside.get("choices"), "choices")
    text = record.text(key) if flat else inside["stem"].strip()
    return offered.question(record, text, offered.right(record, "answerKey"), fact=record.data.get("fact1"))
