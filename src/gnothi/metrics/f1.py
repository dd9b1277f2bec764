"""F1 of the words an answer shares with a gold answer, the best over the gold answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gnothi.metrics.normalise import tokens

_CLOSED = {"yes", "no", "noanswer"}


def f1(answer: str, golds: Sequence[str]) -> float:
    """In [0, 1]. Rajpurkar et al. 2016 (SQuAD), section 6.1, words counted with multiplicity.

    As in HotpotQA's official scorer, "yes", "no" and "noanswer" match only themselves: "yes it is" earns nothing against "yes".
    Where both sides normalise to nothing (a gold answer such as "The") they agree: 1, as in SQuAD 2.0's scorer.
    """
    given = tokens(answer)
    return max((_pair(given, tokens(gold)) for gold in golds), default=0.0)


def _pair(given: list[str], gold: list[str]) -> float:
    if given == gold:
        return 1.0
    if " ".join(given) in _CLOSED or " ".join(gold) in _CLOSED:
        return 0.0
    shared = (Counter(given) & Counter(gold)).total()
    return 2 * shared / (len(given) + len(gold))
