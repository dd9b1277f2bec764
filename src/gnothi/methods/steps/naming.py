"""Which passages are about what a question names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gnothi.signals.replies import normalized
from gnothi.types import Passage

_OWNER = re.compile(r"['’]s\b")


def names_in(question: str) -> frozenset[str]:
    """The words of the names in a question: those with capitals but the first of all, ``normalized``."""
    capital = [word for word in _OWNER.sub("", question).split()[1:] if word.strip("\"'“‘(")[:1].isupper()]
    return frozenset(normalized(" ".join(capital)).split())


def naming(question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Of the passages those that hold most of the names in the question, in title or text; all where it has none.

    A search with a question also finds what shares its other words ("occupation"), and a small model answers from that.
    """
    names = names_in(question)
    held = [len(names.intersection(normalized(f"{one.title} {one.text}").split())) for one in passages]
    return tuple(one for one, count in zip(passages, held, strict=True) if count == max(held))
