"""IIRC (Ferguson et al. 2020): passages of Wikipedia with questions whose answers stand in the articles they link to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_KINDS = ("span", "binary", "value", "none")
_BAD = "bad"


def questions(passage: Record) -> Iterator[Record]:
    """The questions of a passage, each with its ``title``. The text stays in the file, as do the articles; a question that the
    authors marked as bad is left out."""
    title = passage.data.get("title", "")
    try:
        asked = [{**one, "title": title} for one in passage.data["questions"] if one["answer"]["type"] != _BAD]
    except (KeyError, TypeError):
        raise passage.invalid("questions of another shape", "questions, each with question, qid and answer") from None
    for number, one in enumerate(asked, start=1):
        yield Record(one, f"{passage.place}, question {number}", passage.number)


def question(record: Record) -> Question:
    """``kind`` is that of the answer: span, binary (yes or no), value (a number) or none, which is not answerable. Spans are
    alternatives, as SeaKR's and DRAGIN's code takes them; a value's unit is not part of the answer."""
    given = record.data["answer"]
    kind = given["type"]
    if kind not in _KINDS:
        raise record.invalid(f"answer.type = {kind!r:.40}", "span, binary, value or none")
    answers: tuple[str, ...] = ()
    if kind == "span":
        spans = given.get("answer_spans")
        if not isinstance(spans, list) or not all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in spans):
            raise record.invalid(f"answer_spans = {spans!r:.60}", "a list of spans, each with its text")
        answers = tuple(dict.fromkeys(text for one in spans if (text := one["text"].strip())))
    elif kind != "none":
        answers = Record(given, record.place, record.number).answers("answer_value")
    return Question(
        id=record.identity("qid"),
        text=record.text("question"),
        answers=answers,
        kind=kind,
        metadata={"title": str(record.data["title"]), "answerable": kind != "none"},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return {"links", "questions", "text"} <= first.keys()


FORMAT = Format(
    "iirc", "IIRC: the official files (text, links, questions)", recognises, question, particular=2, records=questions
)
