"""Exact match: is the normalised answer one of the normalised gold answers?"""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.metrics.normalise import normalise


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 or 0.0. Rajpurkar et al. 2016 (SQuAD), section 6.1; aliases count alike."""
    given = normalise(answer)
    return float(any(given == normalise(gold) for gold in golds))
