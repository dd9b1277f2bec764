"""SQuAD (Rajpurkar et al. 2016, 2018) and what keeps its form, as XQuAD: articles of paragraphs with their questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def questions(article: Record) -> Iterator[Record]:
    """The questions of an article, each with its ``title``. The paragraphs stay in the file: index it to search them."""
    if "paragraphs" not in article.data and "answers" in article.data:
        yield article
        return
    title = article.data.get("title", "")
    try:
        asked = [{**one, "title": title} for paragraph in article.data["paragraphs"] for one in paragraph["qas"]]
    except (KeyError, TypeError):
        raise article.invalid("paragraphs of another shape", "paragraphs, each with qas") from None
    for number, one in enumerate(asked, start=1):
        yield Record(one, f"{article.place}, question {number}", article.number)


def question(record: Record) -> Question:
    """``metadata`` holds the article's title; of SQuAD 2.0 also whether the question is ``answerable``."""
    given = record.data.get("answers")
    hub = _is_hub(given)
    if not hub and (
        not isinstance(given, list) or not all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in given)
    ):
        raise record.invalid(f"answers = {given!r:.60}", "a list of answers, each with its text")
    answers = record.answers("answers")
    title = record.data.get("title")
    metadata: dict[str, Any] = {"title": str(title)} if title is not None else {}
    if "is_impossible" in record.data:
        metadata["answerable"] = not record.data["is_impossible"]
    elif hub and not answers:
        metadata["answerable"] = False
    return Question(id=record.identity("id"), text=record.text("question"), answers=answers, metadata=metadata)


def recognises(first: Mapping[str, Any]) -> bool:
    paragraphs = first.get("paragraphs")
    official = isinstance(paragraphs, list) and all(isinstance(one, dict) and "qas" in one for one in paragraphs)
    return official or (isinstance(first.get("question"), str) and "context" in first and _is_answers(first.get("answers")))


def _is_answers(given: object) -> bool:
    """Of a single question, as the hub or the official files have them."""
    listed = isinstance(given, list) and given and all(isinstance(one, dict) and "answer_start" in one for one in given)
    return bool(listed) or _is_hub(given)


def _is_hub(answers: object) -> bool:
    """The hub keeps a list of texts and one of places instead of a list of answers."""
    return isinstance(answers, Mapping) and isinstance(answers.get("text"), list) and "answer_start" in answers


FORMAT = Format(
    "squad",
    "SQuAD 1.1 and 2.0, XQuAD: the official files (data: paragraphs, qas), and the hub's (question, context, answers: text)",
    recognises,
    question,
    container="data",
    records=questions,
)
