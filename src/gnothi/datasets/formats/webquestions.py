"""WebQuestions (Berant et al. 2013): the official files, whose answers are written in Lisp."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gnothi.datasets.records import Format, Record
from gnothi.types import Question

_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*)"|([^()]*))\)')


def question(record: Record) -> Question:
    """The id is the record's number, for the files have none."""
    given = record.text("targetValue")
    found = [quoted or bare for quoted, bare in _DESCRIPTION.findall(given)]
    if not found:
        raise record.invalid(f"targetValue = {given!r:.60}", "(list (description ...))")
    return Question(
        id=record.identity("id"), text=record.text("utterance"), answers=tuple(dict.fromkeys(found)), kind="one_hop"
    )


def recognises(first: Mapping[str, Any]) -> bool:
    return {"utterance", "targetValue"} <= first.keys()


FORMAT = Format("webquestions", "WebQuestions: the official files (utterance, targetValue)", recognises, question)
