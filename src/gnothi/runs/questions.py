"""Whether a run's questions are those it began with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gnothi.runs.rows import Row
from gnothi.types import Question


def changed(before: Mapping[str, Any], questions: Sequence[Question], rows: Iterable[Row]) -> str | None:
    """None where the run's questions ``before`` are the first of these, in order; else which of its ``rows`` has another
    question now, as far as they tell."""
    count = before.get("dataset.questions")
    if (
        isinstance(count, int)
        and count <= len(questions)
        and fingerprint(questions[:count]) == before.get("dataset.fingerprint")
    ):
        return None
    now = {question.id: question for question in questions}
    for row in rows:
        if (question := now.get(row.question_id)) is None:
            return f"question {row.question_id!r} is not among them any more"
        pairs = (("text", question.text, row.question), ("answers", tuple(question.answers), row.gold))
        for what, got, expected in (*pairs, ("choices", tuple(question.choices), row.choices)):
            if got != expected:
                return f"the {what} of question {row.question_id!r} changed from {expected!r:.80} to {got!r:.80}"
    return "some were removed, changed, put between others or put in another order"


def fingerprint(questions: Sequence[Question]) -> str:
    """A digest of everything that a run takes from its questions, so that a changed file is noticed when it goes on."""
    digest = hashlib.blake2b(digest_size=8)
    for question in questions:
        taken = (question.id, question.text, question.answers, question.choices, question.kind)
        digest.update(repr(taken).encode())
        if question.metadata.get("answerable") is False:
            digest.update(b"unanswerable")
    return digest.hexdigest()
