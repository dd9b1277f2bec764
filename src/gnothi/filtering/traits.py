"""What texts alone show of a question, of two answers to it and of what a search found: numbers, none of which knows a gold
answer.

``QUESTION`` is known before anything is done, ``DRAFT`` once there is an answer from memory, ``SEARCH`` once there are
passages, ``READING`` once there is an answer from these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Passage, ScoredPassage

STAGES = ("question", "draft", "search", "reading")
QUESTION, DRAFT, SEARCH, READING = STAGES
"""In the order in which they are reached."""
AFTER_SEARCH = (SEARCH, READING)

_ASKS = ("who", "when", "where", "which", "what", "how many")
_YES_NO = re.compile(r"(is|are|was|were|do|does|did|can|could|has|have|had|will|would|should)\b")
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d\d\b")
_NAME = re.compile(r"(?:[A-Z][\w.'’-]*\s?){1,5}")
_SELF = re.compile(r"\bI(?:'m| am| do| don't| could| couldn't| can't| cannot| was)\b")
_NUMBER_WANTED = re.compile(r"\b(when|how many|how much|how old|how long|year|date|number)\b")


@dataclass(frozen=True, slots=True)
class Texts:
    """A question and the answers without and with evidence; None where the record does not hold them."""

    question: str | None = None
    memory: str | None = None
    evidence: str | None = None


def traits(texts: Texts) -> Mapping[str, tuple[str, float]]:
    """Name -> (stage, value)."""
    values: dict[str, tuple[str, float]] = {}
    if texts.question is not None:
        values |= {name: (QUESTION, value) for name, value in _of_question(texts.question).items()}
    for stage, whose, answer in ((DRAFT, "memory", texts.memory), (READING, "evidence", texts.evidence)):
        if answer is not None:
            values |= {f"{whose} {name}": (stage, value) for name, value in _of_answer(answer, texts.question).items()}
    if texts.memory is not None and texts.evidence is not None:
        values |= {name: (READING, value) for name, value in _of_both(texts.memory, texts.evidence).items()}
    return values


def _of_question(question: str) -> dict[str, float]:
    low = question.lower()
    return {
        "question words": float(len(low.split())),
        "question names": float(len(_NAME.findall(question[1:]))),
        "question has a year": float(bool(_YEAR.search(low))),
        "question wants yes or no": float(bool(_YES_NO.match(low))),
        "question compares": float(bool(re.search(r"\b(both|same|or|older|younger|first|earlier|later)\b", low))),
        **{f"question asks {word}": float(bool(re.search(rf"\b{word}\b", low))) for word in _ASKS},
    }


def _of_answer(answer: str, question: str | None) -> dict[str, float]:
    words, question_words = normalized(answer).split(), set(normalized(question or "").split())
    digits = bool(re.search(r"\d", answer))
    values = {
        "words": float(len(words)),
        "refuses": float(says_nothing(answer)),
        "speaks of itself": float(bool(_SELF.search(answer))),
        "is a year": float(bool(_YEAR.search(answer)) and len(words) <= 3),
        "is a name": float(bool(_NAME.fullmatch(answer.strip()))),
        "is yes or no": float(normalized(answer) in ("yes", "no")),
        "repeats the question": len(question_words & set(words)) / max(1, len(set(words))),
    }
    if question is not None:
        low = question.lower()
        number, person = bool(_NUMBER_WANTED.search(low)), bool(re.match(r"who\b", low))
        # 1: of the kind asked for, -1: of another, 0: the question does not tell.
        values["fits the question"] = (1.0 if digits == number else -1.0) if number or person else 0.0
    return values


def _of_both(memory: str, evidence: str) -> dict[str, float]:
    first, second = normalized(memory), normalized(evidence)
    return {
        "answers are the same": float(first == second),
        "answers share words": _shared(first.split(), second.split()),
        "one answer holds the other": float(_holds(first, second) or _holds(second, first)),
        "evidence has more words": float(len(second.split()) - len(first.split())),
    }


def _shared(first: Sequence[str], second: Sequence[str]) -> float:
    """F1 of the words of both, in [0, 1]."""
    return 2 * (Counter(first) & Counter(second)).total() / max(1, len(first) + len(second))


def _holds(text: str, part: str) -> bool:
    """Whole words, both ``normalized``."""
    return bool(part) and f" {part} " in f" {text} "


def traits_of_search(question: str, memory: str, passages: Sequence[ScoredPassage]) -> Mapping[str, float]:
    """What a search brought, best first, before it is read."""
    question_text, answer = normalized(question), normalized(memory)
    titles = [normalized(passage.passage.title) for passage in passages]
    texts = [normalized(f"{passage.passage.title} {passage.passage.text}") for passage in passages]
    named = [bool(title) and _holds(question_text, title) for title in titles]
    scores = [passage.score for passage in passages]
    return {
        "passages": float(len(passages)),
        "best score": scores[0] if scores else 0.0,
        "score drops by": (scores[0] - scores[1]) / max(abs(scores[0]), 1e-9) if len(scores) > 1 else 1.0,
        "passages on what is asked about": float(sum(named)),
        "titles that stand twice": float(len(titles) - len(set(titles))),
        "passages hold memory's answer": sum(_holds(text, answer) for text in texts) / max(1, len(texts)),
        "the best holds memory's answer": float(bool(texts) and _holds(texts[0], answer)),
    }


def traits_of_reading(memory: str, evidence: str, passages: Sequence[Passage]) -> Mapping[str, float]:
    """What the ``passages`` that were read say of both answers."""
    first, second = normalized(memory), normalized(evidence)
    texts = [normalized(f"{passage.title} {passage.text}") for passage in passages]
    titles = [normalized(passage.title) for passage in passages]
    return {
        "passages read": float(len(texts)),
        "titles read twice": float(len(titles) - len(set(titles))),
        "what was read holds memory's answer": sum(_holds(text, first) for text in texts) / max(1, len(texts)),
        "what was read holds evidence's answer": sum(_holds(text, second) for text in texts) / max(1, len(texts)),
    }
