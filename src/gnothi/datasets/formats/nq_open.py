"""NQ-open (Kwiatkowski et al. 2019; Lee et al. 2019): one question a line with its short answers, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """Any of the answers counts as right. The id is the line's number, for the official files have none."""
    return Question(id=record.identity("id"), text=record.text("question"), answers=record.answers("answer"), kind="one_hop")


def recognises(first: Mapping[str, Any]) -> bool:
    return first.keys() == {"question", "answer"} and isinstance(first["answer"], list)


FORMAT = Format("nq_open", "NQ-open: the official lines (question, answer: a list), nothing else", recognises, question)
