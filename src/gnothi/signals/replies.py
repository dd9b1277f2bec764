"""What a reply says: the form in which replies are compared, and whether one says anything at all."""

from __future__ import annotations

import re
import unicodedata

_ARTICLES = frozenset({"a", "an", "the"})
_NO_ANSWER = frozenset({"", "unknown", "i dont know", "i do not know", "no i dont know", "no i do not know", "not known"})
_CONCLUSION = "answer is"


def normalized(text: str) -> str:
    """The form in which texts count as equal: Unicode-folded, lower case, without punctuation, articles and extra spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = re.sub(r"['’]", "", folded)
    if not letters.isascii():  # which has no marks
        letters = "".join(c for c in letters if not unicodedata.combining(c))
    words = re.sub(r"[^\w\s]|_", " ", letters).split()
    return " ".join(word for word in words if word not in _ARTICLES) or " ".join(words)


def says_nothing(reply: str) -> bool:
    """Whether a reply is blank or owns up to not knowing: "unknown", "I don't know", "So the answer is unknown."."""
    form = normalized(reply)
    if form.endswith(_CONCLUSION):
        return False  # cut off before the answer
    return form.rpartition(_CONCLUSION)[2].strip() in _NO_ANSWER


def reply_says_yes(reply: str) -> bool:
    """Whether a reply says yes: the first of its parts, between punctuation, that holds yes or no ("Sure! Yes", "The answer is
    yes.") holds yes alone and does not negate it. Anything else is a no."""
    for part in re.split(r"[.,:;!?\n]+|\s[-–—]\s", reply.replace("’", "'")):
        words = [word.strip("\"'*()[]_`") for word in part.casefold().split()]
        if replies := {"yes", "no"}.intersection(words):
            return replies == {"yes"} and not any(word in ("not", "cannot") or word.endswith("n't") for word in words)
    return False
