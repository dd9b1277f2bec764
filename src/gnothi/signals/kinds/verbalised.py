"""What the model says when asked how likely its answer is right (Tian et al. 2023; Xiong et al. 2024): works with any model.

The answer and the question how sure it is are two requests ("Verb. 2S top-1" of Tian et al.). A reply without one number that
can be a probability is no measurement: infinity, as where a draft is blank, or of a model with tasks of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continued, FollowUp
from gnothi.types import Capabilities, Decoding, Prompt, Task

CONFIDENCE = Task(
    "confidence",
    "You see a question and a proposed answer. Say how likely it is that the answer is right: one number from 0 % (surely "
    "wrong) to 100 % (surely right), and nothing else.",
    answer_label="Probability:",
)
_REPLY = Decoding(max_tokens=20, stop=("\n",))
_NUMBER = re.compile(
    r"(?<![\w.,])(-?)(\d+(?:[.,]\d+)?|[.,]\d+)(?![\d,])(?<!,\d\d\d)\s*(%|percent\b|per cent\b|/\s*100\b|out of 100\b)?",
    re.IGNORECASE,
)


_RANGE = re.compile(r"\d\s*%?\s*(-|–|—|to|or|and)\s*[\d.]")


def stated(reply: str) -> float | None:
    """The probability in [0, 1] that a reply states: "85 %", "85", "85/100", "0.85", ".85". Percent signs go before other
    numbers. None without one, for several that differ or a range, and for one outside of the range."""
    numbers = [(sign, float(digits.replace(",", ".")), digits, unit) for sign, digits, unit in _NUMBER.findall(reply)]
    numbers = [one for one in numbers if one[3]] or numbers
    if _RANGE.search(reply):
        return None
    values = {_share(*one) for one in numbers}
    return values.pop() if len(values) == 1 else None


def _share(sign: str, value: float, digits: str, unit: str) -> float | None:
    if sign or value > 100:
        return None
    fraction = not unit and value <= 1 and not digits.isdigit()
    return value if fraction else value / 100


@dataclass(frozen=True, slots=True)
class Verbalised(FollowUp):
    """1 less the probability that the model states for its greedy continuation."""

    name: ClassVar[str] = "verbalised"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.5

    async def ask(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:
        answer = f"{prompt.answer_so_far} {continued.greedy.text}".strip()
        taught = model.profile.tasks
        if not answer or (taught is not None and CONFIDENCE.name not in taught):
            return float("inf")
        request = Prompt(CONFIDENCE, f"{prompt.question}\nProposed answer: {answer}", prompt.passages, prompt.choices)
        probability = stated((await model.generate(request, _REPLY)).text)
        return float("inf") if probability is None else 1.0 - probability
