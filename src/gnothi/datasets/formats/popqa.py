"""PopQA (Mallen et al. 2023): one-hop questions about entities, each with how often its subject is looked up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """``kind`` is the relation asked for; metadata's ``popularity`` counts monthly page views of the subject."""
    given, views = (record.data.get(key) for key in ("possible_answers", "s_pop"))
    try:
        answers = json.loads(given) if isinstance(given, str) else given
        popularity = int(str(views))
    except (ValueError, RecursionError):
        raise record.invalid(
            f"possible_answers = {given!r:.60}, s_pop = {views!r:.20}", "a JSON list of answers, a whole number"
        ) from None
    answered = Record({"possible_answers": answers}, record.place, record.number).answers("possible_answers")
    kind = record.data.get("prop")
    return Question(
        id=record.identity("id"),
        text=record.text("question"),
        answers=answered,
        kind=kind.strip().replace(" ", "_") if isinstance(kind, str) else "",
        metadata={"popularity": popularity},
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return {"question", "possible_answers", "s_pop"} <= first.keys()


FORMAT = Format(
    "popqa",
    "PopQA: the official table (TSV: question, possible_answers, s_pop ...), or the same keys as JSON",
    recognises,
    question,
    table=True,
)
