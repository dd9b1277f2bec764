"""Raised letters in plain text: 10 to the 6th is ``10^6``, not 106; the 19th stays the 19th, H2O stays H2O."""

from __future__ import annotations

import re

_POWER = re.compile(r"[+\-−–]?\d[\d.,/]*")


def raised(before: str, text: str, link: bool = False) -> str:
    """How ``text``, raised after ``before``, is written. A link that is raised leads to a note: ``[1]``."""
    inner = text.strip()
    last = before[-1:]
    if link and inner.isdigit():
        return f"[{inner}]"
    power = _POWER.fullmatch(inner) if last.isalnum() or last in (")", "]") else None
    variable = len(inner) == 1 and inner.isalpha() and inner != "o" and last.isalpha() and not before[-2:-1].isalnum()
    return f"^{inner}" if power or variable else text
