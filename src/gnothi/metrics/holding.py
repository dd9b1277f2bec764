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
    words_of_texts, question_words = [words(text) for text in texts], words(question)
    visible = [gold for gold in map(words, filter(can_be_seen, golds)) if not _within(gold, question_words)]
    if not words_of_texts:
        return False
    if any(_within(gold, text) for gold in visible for text in words_of_texts):
        return True
    return False if visible and len(visible) == len(golds) else None


def can_be_seen(gold: str) -> bool:
    """Whether a text that holds the gold answer says it, rather than by chance or in other words."""
    form = normalise(gold)
    return len(form) > 1 and form not in _SAID and not sentence_like(gold)


def only_inside_words(answer: str, golds: Sequence[str]) -> bool:
    """Whether the gold answers stand in the answer as parts of longer words alone: Ada in Canada, 18 in 1820."""
    form = normalise(alike(answer))
    inside = [
        gold_form for gold in golds if (gold_form := normalise(alike(gold))) and gold_form in form and gold_form not in _SAID
    ]
    return bool(inside) and not any(_within(words(gold_form), words(form)) for gold_form in inside)


def words(text: str) -> list[str]:
    """Words and signs, small, in ``alike`` spelling; those at the ends that are signs alone are left out."""
    parts = _ASCII.findall(text.lower()) if text.isascii() else _words(alike(text).lower())
    signs = [place for place, word in enumerate(parts) if word[0].isalnum()]
    return parts[signs[0] : signs[-1] + 1] if signs else []


def _words(text: str) -> list[str]:
    parts: list[str] = []
    going_on = False
    for character in text:
        alone = bool(_UNSPACED.match(character))
        letter = not alone and (character.isalnum() or unicodedata.category(character)[0] == "M")
        if letter and going_on:
            parts[-1] += character
        elif not character.isspace():
            parts.append(character)
        going_on = letter
    return parts


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    if not part:
        return False
    places = (place for place, word in enumerate(whole) if word == part[0])
    return any(list(whole[place : place + len(part)]) == list(part) for place in places)
