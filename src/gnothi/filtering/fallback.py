"""What a filter leaves when nothing passes it: as published, something all the same, and an event that says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from gnothi import events
from gnothi.types import Question

T = TypeVar("T")


def fall_back(instead: T, kind: str, question: Question, scores: Sequence[float] = (), threshold: float | None = None) -> T:
    """``instead``, in place of the nothing that passed. Emits Decided with kind ``keep``, the best score if there are any, and
    the verdict ``fall_back``."""
    best = max(filter(math.isfinite, scores), default=None)
    events.emit(events.Decided("keep", kind, best, threshold, "fall_back", question.text))
    return instead
