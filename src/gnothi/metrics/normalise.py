"""The normalisation of SQuAD's and HotpotQA's official scorers: lower case, no punctuation, no articles, single spaces."""

from __future__ import annotations

import re
import string

_PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """The form in which answers are compared. Only ASCII punctuation goes, as in the official scorers; idempotent."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def tokens(text: str) -> list[str]:
    """The words of the normalised text."""
    return normalise(text).split()
