"""Does a text hold an answer? By words, as DPR judges what a retriever found (Karpukhin et al. 2020, ``has_answer``)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from gnothi.metrics.forms import sentence_like
from gnothi.metrics.normalise import normalise
from gnothi.metrics.spelling import alike

_ASCII = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]")
"""Letters of scripts that do not separate words, or (Hangul) join particles to them: each is a word of its own here."""
_SAID = frozenset(("yes", "no", "true", "false"))


def holds(texts: Iterable[str], golds: Sequence[str], question: str) -> bool | None:
    """Whether one of the texts holds one of the gold answers: its words and signs in a row, whatever their case, kinds of
    dashes and widths.

    None where none does, but a gold answer could not be seen: yes and no, one character, a sentence, or words of the question
    ("Which came first, A or B?"). Without a text: False.
    """
    read, asked = [words(text) for text in texts], words(question)
    wanted = [gold for gold in map(words, filter(can_be_seen, golds)) if not _within(gold, asked)]
    if not read:
        return False
    if any(_within(gold, text) for gold in wanted for text in read):
        return True
    return False if wanted and len(wanted) == len(golds) else None


def can_be_seen(gold: str) -> bool:
    """Whether a text that holds the gold answer says it, rather than by chance or in other words."""
    form = normalise(gold)
    return len(form) > 1 and form not in _SAID and not sentence_like(gold)


def only_inside_words(answer: str, golds: Sequence[str]) -> bool:
    """Whether the gold answers stand in the answer as parts of longer words alone: Ada in Canada, 18 in 1820."""
    given = normalise(alike(answer))
    inside = [form for gold in golds if (form := normalise(alike(gold))) and form in given and form not in _SAID]
    return bool(inside) and not any(_within(words(form), words(given)) for form in inside)


def words(text: str) -> list[str]:
    """Words and signs, small, in ``alike`` spelling; those at the ends that are signs alone are left out."""
    found = _ASCII.findall(text.lower()) if text.isascii() else _words(alike(text).lower())
    signs = [place for place, word in enumerate(found) if word[0].isalnum()]
    return found[signs[0] : signs[-1] + 1] if signs else []


def _words(text: str) -> list[str]:
    found: list[str] = []
    going_on = False
    for one in text:
        alone = bool(_UNSPACED.match(one))
        letter = not alone and (one.isalnum() or unicodedata.category(one)[0] == "M")
        if letter and going_on:
            found[-1] += one
        elif not one.isspace():
            found.append(one)
        going_on = letter
    return found


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    if not part:
        return False
    places = (place for place, word in enumerate(whole) if word == part[0])
    return any(list(whole[place : place + len(part)]) == list(part) for place in places)
