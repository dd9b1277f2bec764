"""MedQA (Jin et al. 2021): questions of medical licensing examinations, in the official lines of four or five options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets import choices
from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """Metadata's ``exam`` is the file's ``meta_info`` (step1, ...). The files name the right option by its letter
    (``answer_idx``) and its text (``answer``); where both are there they must agree."""
    offered = choices.read(record, record.data.get("options"), "options")
    by_letter = offered.right(record, "answer_idx")
    answers = by_letter or tuple(choices.by_label(" ".join(text.split()), offered.texts) for text in record.answers("answer"))
    if by_letter and "answer" in record.data and " ".join(record.text("answer").split()) != by_letter[0]:
        raise record.invalid(
            f"answer = {record.data['answer']!r:.60} with answer_idx = {record.data['answer_idx']!r}",
            f"the option of that letter: {by_letter[0]!r:.60}",
        )
    if any(answer not in offered.texts for answer in answers):
        raise record.invalid(f"answer = {record.data['answer']!r:.60}", "one of the options")
    exam = record.data.get("meta_info")
    return Question(
        id=record.identity("id"),
        text=record.text("question"),
        answers=answers,
        choices=offered.texts,
        kind="choice",
        metadata={"exam": exam} if isinstance(exam, str) else {},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return {"question", "options"} <= first.keys() and bool({"answer_idx", "answer"} & first.keys())


FORMAT = Format("medqa", "MedQA: the official lines (question, options, answer, answer_idx)", recognises, question)
