"""The form of an answer: a few words, as exact match expects them, or a sentence around them? Or a refusal, which says that
there is none?"""

from __future__ import annotations

import re

from gnothi.signals.replies import normalized, says_nothing

# Finite verbs tell "The capital of France is Paris" from "the capital of France". Lower case alone: titles write them large.
_VERB = re.compile(
    r"\S\s+(?:is|are|was|were|am|has|had|have|does|did|do|can|could|will|would|refers|means|became|becomes|won|wrote|made|"
    r"died|lived|played|plays|isn['’]t|wasn['’]t|aren['’]t|weren['’]t|don['’]t|doesn['’]t|didn['’]t)\s+\S"
)
_OPENING = re.compile(r"(?:Sure|Certainly|Based on|According to|The answer|It['’]s|(?i:i['’]m))\b")
_MOST_WORDS = 12


def sentence_like(text: str) -> bool:
    """Whether an answer reads like a sentence where a short one is expected, so that exact match cannot see what it says.

    It has a finite verb between other words, a chatty opening, or more than a dozen words. A name, a number, a title in
    capitals ("What Is Life?") or a noun phrase does not. English; a word list, so rare verbs are missed.
    """
    words = text.split()
    return len(words) > _MOST_WORDS or (len(words) > 1 and bool(_VERB.search(text) or _OPENING.match(text.strip())))


# In the form of ``normalized``: no apostrophes, no articles.
_OPENINGS = tuple(
    f"{opening} "
    for opening in (
        "i dont know",
        "i do not know",
        "i am not sure",
        "im not sure",
        "i cannot answer",
        "i cant answer",
        "i am unable to answer",
        "i have no comment",
        "it is unknown",
        "it is not known",
        "it is impossible to know",
        "it is impossible to say",
        "it cannot be determined",
        "there is no way to know",
        "there is no known answer",
        "there is no definitive answer",
        "this question cannot be answered",
        "question cannot be answered",
        "question is unanswerable",
        "this question is unanswerable",
        "cannot be determined",
        "unanswerable",
        "no one knows",
        "nobody knows",
    )
)


def refuses(answer: str) -> bool:
    """Whether an answer is blank, says that it is unknown (``says_nothing``) or begins with one of a few ways to say so: "I do
    not know who ...", "It is impossible to know", "Nobody knows", "I have no comment".

    A list of openings: a title that begins like one ("Nobody Knows") passes for a refusal, and what is put otherwise is missed.
    """
    return says_nothing(answer) or f"{normalized(answer)} ".startswith(_OPENINGS)
