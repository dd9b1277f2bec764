"""The normalisation of SQuAD's and HotpotQA's official scorers (lower case, no punctuation, no articles, single spaces), and
their two scores: exact match and F1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """The form in which answers are compared. Only ASCII punctuation goes, as in the official scorers; idempotent."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def tokens(text: str) -> list[str]:
    """The words of the normalised text."""
    return normalise(text).split()


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 or 0.0. Rajpurkar et al. 2016 (SQuAD), section 6.1; aliases count alike."""
    form = normalise(answer)
    return float(any(form == normalise(gold) for gold in golds))


_CLOSED = {"yes", "no", "noanswer"}


def f1(answer: str, golds: Sequence[str]) -> float:
    """In [0, 1]. Rajpurkar et al. 2016 (SQuAD), section 6.1, words counted with multiplicity.

    As in HotpotQA's official scorer, "yes", "no" and "noanswer" match only themselves: "yes it is" earns nothing against "yes".
    Where both sides normalise to nothing (a gold answer such as "The") they agree: 1, as in SQuAD 2.0's scorer.
    """
    words = tokens(answer)
    return max((_pair(words, tokens(gold)) for gold in golds), default=0.0)


def _pair(words: list[str], gold_words: list[str]) -> float:
    if words == gold_words:
        return 1.0
    if " ".join(words) in _CLOSED or " ".join(gold_words) in _CLOSED:
        return 0.0
    shared = (Counter(words) & Counter(gold_words)).total()
    return 2 * shared / (len(words) + len(gold_words))
