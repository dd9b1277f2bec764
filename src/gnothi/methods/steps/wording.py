"""What the wording of a question tells: whether it asks for yes or no, for one of several, for one fact. English."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gnothi.signals.names import OWNER
from gnothi.signals.replies import normalized
from gnothi.types import Passage, Question
from gnothi.yes_or_no import asks_yes_or_no

_OFFERING = frozenset("or both between among than either neither".split())
_JOINED = re.compile(r"[A-Z][^\s,]*,? and (?:the )?[A-Z]")  # "Ann and Mira": two things, of which one may be asked for
_MOST_WORDS = 20
_OPENING_WORDS = 3
_CLAUSES = frozenset("who whose whom which that where when what".split())
_COMPARING = frozenset("or both same than between each among".split())
_COPULA = re.compile(r"^\W*(?:who|what|where|when)(?:['’]s|\s+(?:is|are|was|were))\b", re.IGNORECASE)
_PARTICIPLE = re.compile(
    r"\s(?:born|located|founded|made|set|held|buried|killed|[a-z]{3,}ed)(?:\s(?:in|at|by|on|from|to|into))?\W*$"
)
# "the capital of France", "Carmen's composer": a relation to walk along. "Earl of Mansfield" is a name.
_OF = re.compile(r"\b[a-z]+ of\b")
_OF_A_NAME = re.compile(r"\b[a-z]+ of (?:the )?[A-Z]\w+")
_POSSESSIVE = re.compile(r"(?:['’]s|s['’]) (?=[a-z])")


def offers_a_choice(question: str) -> bool:
    """Whether the wording asks for yes or no, or for one of the things that it names ("Who is older, Ann or Mira?", "Which of
    Ann and Mira ..."): its own words may then be the answer. English."""
    return asks_yes_or_no(question) or bool(_OFFERING.intersection(question.casefold().split()) or _JOINED.search(question))


def names_in(question: str) -> frozenset[str]:
    """The words of the names in a question: those with capitals but the first of all, ``normalized``."""
    capital = [word for word in OWNER.sub("", question).split()[1:] if word.strip("\"'“‘(")[:1].isupper()]
    return frozenset(normalized(" ".join(capital)).split())


def naming(question: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Of the passages those that hold most of the names in the question, in title or text; all where it has none.

    A search with a question also finds what shares its other words ("occupation"), and a small model answers from that.
    """
    names = names_in(question)
    counts = [len(names.intersection(normalized(f"{one.title} {one.text}").split())) for one in passages]
    return tuple(one for one, count in zip(passages, counts, strict=True) if count == max(counts))


def looks_one_hop(question: Question, passages: Sequence[Passage] = ()) -> bool:
    """Whether one fact seems to answer the question: it names a thing and asks for one property of it ("Who wrote Emma?",
    "What is the capital of France?").

    No yes-or-no question, choice, comparison or relative clause; and no second relation to walk along ("the mother of the
    director of ..."). What a passage calls by these words is one thing ("the lighthouse of Orvel"). English; where the wording
    says little, the answer is no.
    """
    text = " ".join(question.text.split())
    words = [word.strip(".,;:?!\"'()") for word in text.split()]
    if question.choices or not words or len(words) > _MOST_WORDS or asks_yes_or_no(text):
        return False
    if _COMPARING.intersection(words) or _CLAUSES.intersection(words[_OPENING_WORDS:]):
        return False
    relations = len(_OF.findall(text)) + len(_POSSESSIVE.findall(text))
    texts = [f" {normalized(f'{one.title} {one.text}')} " for one in passages]
    relations -= sum(any(f" {normalized(name)} " in one for one in texts) for name in _OF_A_NAME.findall(text))
    # "What is the capital of X?" asks where the relation leads; "Where was the composer of X born?" asks for more than that.
    allowed = 1 if _COPULA.match(text) and not _PARTICIPLE.search(text) else 0
    return relations <= allowed
