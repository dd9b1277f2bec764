"""Whether a question asks for yes or no. English."""

from __future__ import annotations

import re

_AUXILIARY = (
    "is are was were am do does did has have had can could will would shall should may might must "
    "isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't"
).split()
_OPENING = re.compile(rf"\W*(?:{'|'.join(_AUXILIARY)})\b(?!')", re.IGNORECASE)
_ALTERNATIVES = re.compile(r",?\s+or\s+(?!not\b)", re.IGNORECASE)


def asks_yes_or_no(question: str) -> bool:
    """Whether the wording asks for yes or no: it begins with an auxiliary verb and offers no alternatives ("..., A or B?")."""
    text = question.replace("’", "'")
    return bool(_OPENING.match(text)) and not _ALTERNATIVES.search(text)
