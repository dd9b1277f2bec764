"""Questions to be answered by yes or no: told by their wording, and their answers brought into one form."""

from __future__ import annotations

import re

from gnothi.signals.replies import normalized

_AUXILIARY = (
    "is are was were am do does did has have had can could will would shall should may might must "
    "isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't"
).split()
_OPENING = re.compile(rf"\W*(?:{'|'.join(_AUXILIARY)})\b(?!')", re.IGNORECASE)
_ALTERNATIVES = re.compile(r",?\s+or\s+(?!not\b)", re.IGNORECASE)
_YES = frozenset({"yes", "yeah", "true", "correct"})
_NO = frozenset({"no", "nope", "false", "incorrect"})


def asks_yes_or_no(question: str) -> bool:
    """Whether the wording asks for yes or no: it begins with an auxiliary verb and offers no alternatives ("..., A or B?")."""
    text = question.replace("’", "'")
    return bool(_OPENING.match(text)) and not _ALTERNATIVES.search(text)


def yes_or_no(answer: str) -> str:
    """``yes`` or ``no`` for an answer that begins so ("Yes, it is."), any other answer unchanged."""
    first = normalized(answer).partition(" ")[0]
    return "yes" if first in _YES else "no" if first in _NO else answer
