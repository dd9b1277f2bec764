"""What every retriever promises about its results: at most k, best first, ties broken by passage id."""

from __future__ import annotations

from collections.abc import Iterable

from gnothi.errors import InvalidSetting
from gnothi.types import ScoredPassage


def ranked(results: Iterable[ScoredPassage], k: int) -> tuple[ScoredPassage, ...]:
    """The k best in order of falling score, equal scores in order of passage id."""
    return tuple(sorted(results, key=lambda result: (-result.score, result.passage.id))[:k])


def check_k(k: int) -> None:
    """Raise InvalidSetting for a negative number of results; 0 is a valid wish for none."""
    if k < 0:
        raise InvalidSetting(f"the number of passages to retrieve: got {k}, expected 0 or more. Pass a larger k.")
