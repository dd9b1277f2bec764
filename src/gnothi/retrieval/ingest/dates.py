"""Dates of documents, as ISO 8601 has them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)")


def day(text: str | datetime | None) -> str:
    """The day (``2025-01-31``) of a date that begins as ISO 8601 has it, by UTC where it is a time; empty for others."""
    if isinstance(text, datetime):
        return (text.astimezone(UTC) if text.tzinfo else text).date().isoformat()
    found = _DAY.match(text.strip()) if text else None
    try:
        return date(*map(int, found.groups())).isoformat() if found else ""
    except ValueError:
        return ""
