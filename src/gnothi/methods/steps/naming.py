"""Which passages are about what a question names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gnothi.signals.replies import normalized
from gnothi.types import Passage

_OWNER = re.compile(r"['’]s\b")


_JOINING = frozenset("of the de da di del van von der la le el al".split())
_ASKING = frozenset(
    "who whom whose what which when where why how in on at of for from to by with is are was were do does did has have had can "
    "the a an if both between".split()
)


def runs_of_names(question: str) -> tuple[str, ...]:
    """The names in a question as it writes them, each once: words with capitals beside each other, with small words between
    them ("Bank of England") and without the word that asks. Numbers go on with a name, and begin none."""
    runs: list[list[str]] = [[]]
    for place, written in enumerate(_OWNER.sub(";", question).split()):
        word = written.strip(',;:?!"“”')
        first = word.lstrip("(‘'")[:1]
        begins = first.isupper() and not (place == 0 and word.lower() in _ASKING)
        goes_on = bool(runs[-1]) and (first.isdigit() or word.lower() in _JOINING)
        if begins or goes_on:
            runs[-1].append(word)
        if not (begins or goes_on) or written[-1] in ",;:?!":
            runs.append([])
    return tuple(dict.fromkeys(name for run in runs if (name := _trimmed(run))))


def _trimmed(run: list[str]) -> str:
    """Without small words at the end."""
    while run and run[-1].lower() in _JOINING:
        run = run[:-1]
    return " ".join(run).rstrip(".")


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
