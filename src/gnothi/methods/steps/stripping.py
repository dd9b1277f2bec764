"""The answer within a sentence that repeats the question: "Paris" of "The capital of France is Paris"."""

from __future__ import annotations

import re

from gnothi.methods.steps.yes_no import asks_yes_or_no
from gnothi.signals.replies import normalized

_VERBS = frozenset("is are was were am be been has had have did does do can could will would".split())
_PRONOUNS = frozenset("it he she they".split())
_LEADING = frozenset("a an the this that there in on at by to into from of as for also currently".split())
_CLAUSE = re.compile(r",?\s+(?:who|which|where|that|because|since)\s|;\s|\s\(")
_OWNER = re.compile(r"['’]s?(?=\W|$)")
_BY = re.compile(r"^[a-z]+ by ")


def answer_within(sentence: str, question: str) -> str:
    """What a ``sentence`` says beyond the ``question``, where all else in it is the question's own words around a verb;
    otherwise the sentence as it is, so what is left is never blank nor the question's own subject.

    "George Rankin was a politician" → "politician", "Paris is the capital of France" → "Paris". A reply without a verb, and one
    to a question to be answered by yes or no, is left alone.
    """
    words = sentence.split()
    if len(words) < 3 or asks_yes_or_no(question):
        return sentence
    asked = frozenset(normalized(_OWNER.sub("", question)).split())
    own = [_repeats(word, asked) for word in words]
    start = own.index(False) if False in own else len(words)
    before = [word for word in map(_bare, words[:start]) if word not in _LEADING]
    if len(before) > 1 or _VERBS.intersection(before):
        return _said(" ".join(words[start:]), asked) or sentence
    # "Who wrote Emma?": the second word is the verb that its answer stands before.
    asks, *others = question.split() or [""]
    verbs = _VERBS | {_bare(word) for word in others[:1] if asks.casefold() == "who"}
    end = next((place for place, word in enumerate(words) if place and _bare(word) in verbs), None)
    if end is not None and all(own[end:]):
        return _said(" ".join(words[:end]), asked) or sentence
    return sentence


def _said(text: str, asked: frozenset[str]) -> str:
    """The text up to its first clause, without "written by"; empty where it says no more than was asked."""
    text = _BY.sub("", _CLAUSE.split(text, maxsplit=1)[0].strip(" ,.:;-–—"))
    return text if any(not _repeats(word, asked) for word in text.split()) else ""


def _repeats(word: str, asked: frozenset[str]) -> bool:
    """Whether a word is the question's, in some form ("flows" of "flow"), or says nothing by itself."""
    bare = _bare(_OWNER.sub("", word))
    if not bare or bare in _VERBS | _LEADING | _PRONOUNS | asked:
        return True
    return word[0].islower() and any(_akin(bare, one) for one in asked)


def _akin(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return len(short) > 2 and len(long) - len(short) <= 3 and long.startswith(short[: max(3, len(short) - 1)])


def _bare(word: str) -> str:
    return normalized(word).replace(" ", "")
