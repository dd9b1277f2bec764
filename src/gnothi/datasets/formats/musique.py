"""MuSiQue (Trivedi et al. 2022): questions over two to four passages, composed of simpler ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """``kind`` is the number of steps ("2hop"). Metadata: ``supporting`` titles, the ``decomposition``, and ``answerable``
    where the file says so. The passages stay in the file."""
    given = record.data.get("paragraphs")
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        raise record.invalid(f"paragraphs = {given!r:.60}", "a list of objects with title and is_supporting")
    steps = record.data.get("question_decomposition")
    metadata: dict[str, Any] = {
        "supporting": tuple(dict.fromkeys(str(one.get("title")) for one in given if one.get("is_supporting"))),
        "decomposition": tuple(str(one.get("question")) for one in steps if isinstance(one, Mapping))
        if isinstance(steps, list)
        else (),
    }
    if isinstance(record.data.get("answerable"), bool):
        metadata["answerable"] = record.data["answerable"]
    answerable = metadata.get("answerable", True)
    aliases = record.answers("answer_aliases") if "answer_aliases" in record.data else ()
    identity = record.identity("id")
    return Question(
        id=identity,
        text=record.text("question"),
        answers=tuple(dict.fromkeys((*record.answers("answer"), *aliases))) if answerable else (),
        kind=identity.split("__")[0] if "hop" in identity.split("__")[0] else "",
        metadata=metadata,
    )


def recognises(first: Mapping[str, Any]) -> bool:
    paragraphs = first.get("paragraphs")
    return (
        {"question", "answer"} <= first.keys()
        and isinstance(paragraphs, list)
        and all(isinstance(one, Mapping) and "paragraph_text" in one for one in paragraphs)
    )


FORMAT = Format("musique", "MuSiQue: the official lines (paragraphs, question, answer, answer_aliases)", recognises, question)
