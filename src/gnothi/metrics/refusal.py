"""Refusals: does an answer say that there is none?"""

from __future__ import annotations

from gnothi.signals.replies import normalized, says_nothing

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
