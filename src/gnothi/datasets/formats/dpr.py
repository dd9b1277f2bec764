"""DPR's questions (Karpukhin et al. 2020), ``*.qa.csv``: a line is a question, a tab and a list of answers.

There is no header. NaturalQuestions, TriviaQA, SQuAD, WebQuestions and CuratedTREC as open questions.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question


def question(record: Record) -> Question:
    """The answers are written as a list of Python's. The id is the line's number, for the files have none."""
    given = record.data.get("answers")
    try:
        found = ast.literal_eval(given) if isinstance(given, str) else given
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, list):
        raise record.invalid(f"answers = {given!r:.60}", "a list as Python writes it, such as ['one', 'two']")
    answers = Record({"answers": found}, record.place, record.number).answers("answers")
    return Question(id=record.identity("id"), text=record.text("question"), answers=answers, kind="one_hop")


def recognises(first: Mapping[str, Any]) -> bool:  # noqa: ARG001
    """Never by its keys, for it has none: by the file's name, or ``--format dpr``."""
    return False


FORMAT = Format(
    "dpr",
    "DPR's questions: files named *.qa.csv (question, a tab, a list of answers)",
    recognises,
    question,
    ending=".qa.csv",
    columns=("question", "answers"),
)
