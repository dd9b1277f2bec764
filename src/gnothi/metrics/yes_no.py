"""Yes-or-no answers: what a reply says, whatever else it says beside it."""

from __future__ import annotations

from gnothi.metrics.normalise import tokens

YES, NO = "yes", "no"
_SAYS = {YES: YES, NO: NO, "true": YES, "false": NO}


def verdict(answer: str) -> str:
    """``yes``, ``no``, or nothing where the answer says neither or both.

    Its first word counts ("No, he was not"), true and false too; else the only one of yes and no that occurs as a word ("the
    answer is yes").
    """
    words = tokens(answer)
    if words and words[0] in _SAYS:
        return _SAYS[words[0]]
    said = {word for word in words if word in (YES, NO)}
    return said.pop() if len(said) == 1 else ""
