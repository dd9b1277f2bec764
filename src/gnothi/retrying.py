"""When a failed request is worth another try, and how long to wait before it."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429})


def worth_another_try(status: int) -> bool:
    """Whether a response of that HTTP status may be followed by a better one."""
    return status in WORTH_ANOTHER_TRY or status >= 500


def backoff(failures: int, chance: random.Random | None = None) -> float:
    """Seconds to wait after ``failures`` failed tries in a row: doubled each time, and spread over its upper half so that
    requests that failed together do not come back together."""
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 16))
    return wait * (0.5 + 0.5 * (chance or random).random())


_IN_WORDS = re.compile(r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)? ?(?:ms|milli|h|m|s)[a-z]* ?)+)", re.IGNORECASE)
_SECONDS = {"ms": 1e-3, "milli": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def asked_to_wait(headers: Mapping[str, str], words: str = "", now: float | None = None) -> float | None:
    """Seconds from ``Retry-After`` (a number or a date) or ``Retry-After-Ms``, else from the words of a refusal, all that some
    servers give (``try again in 1m2.5s``); None where nothing says."""
    for header, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(header, "").strip()
        if not text:
            continue
        try:
            return max(0.0, float(text) * unit) if float(text) < float("inf") else None
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now))
        except (ValueError, OverflowError):
            continue
    if (asked := _IN_WORDS.search(words)) is None:
        return None
    parts = re.findall(r"([\d.]+) ?(ms|milli|h|m|s)", asked[1].lower())
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
