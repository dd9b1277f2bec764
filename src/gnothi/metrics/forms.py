"""The form of an answer: a few words, as exact match expects them, or a sentence around them?"""

from __future__ import annotations

import re

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
