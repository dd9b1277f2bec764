"""Natural Questions (Kwiatkowski et al. 2019) in full: the hub's rows, and Google's simplified lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_YES_NO = {0: "no", 1: "yes", "NO": "no", "YES": "yes"}


def question(record: Record) -> Question:
    """Gold answers are every annotator's short ones, and yes or no. The page stays in the file."""
    try:
        found = tuple(dict.fromkeys(_answers(record.data)))
    except (AttributeError, IndexError, KeyError, TypeError):
        raise record.invalid("annotations of another shape", "annotations with short_answers") from None
    asked = record.data.get("question")
    inside = Record(asked, record.place, record.number) if isinstance(asked, Mapping) else record
    return Question(
        id=record.identity("id", "example_id"),
        text=inside.text("text") if inside is not record else record.text("question_text"),
        answers=found,
        kind="one_hop",
    )


def _answers(data: Mapping[str, Any]) -> list[str]:
    given = data["annotations"]
    if isinstance(given, Mapping):  # the hub turns a list of objects into an object of lists
        texts = [str(text) for one in given["short_answers"] for text in one["text"]]
        return [*texts, *(_YES_NO[one] for one in given["yes_no_answer"] if one in _YES_NO)]
    tokens = str(data["document_text"]).split(" ") if "document_text" in data else []
    spans = [(span["start_token"], span["end_token"]) for one in given for span in one["short_answers"]]
    texts = [" ".join(tokens[start:end]) for start, end in spans]
    return [*filter(None, texts), *(_YES_NO[one] for one in (one["yes_no_answer"] for one in given) if one in _YES_NO)]


def recognises(first: Mapping[str, Any]) -> bool:
    asked = first.get("question")
    hub = isinstance(asked, Mapping) and "text" in asked and "document" in first
    return "annotations" in first and (hub or {"question_text", "document_text"} <= first.keys())


FORMAT = Format(
    "natural_questions",
    "Natural Questions: the hub's rows (question: text; annotations), and Google's simplified lines (question_text)",
    recognises,
    question,
)
