"""What a reply to "do you know?" is worth (SKILL-RAG, section 4.2, "Prompt and Reward Design").

The best rule under this table says Yes exactly where acc > (sqrt(5) - 1) / 2: a model whose answer is right with probability
acc earns acc (2 acc - 1) - (1 - acc) = 2 acc ** 2 - 1 with Yes and 1 - 2 acc with No, equal where acc ** 2 + acc = 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gnothi.methods.steps.parsing import as_choice, read_reply
from gnothi.metrics import METRICS

INDIFFERENT = (math.sqrt(5) - 1) / 2
"""The familiarity at which Yes and No are worth the same: above it, a question counts as known."""
YES, NO = "Yes, I know: {answer}.", "No, I don't know."

_YES = re.compile(r"\s*yes,?\s+i\s+know\b[\s.:,;!–—-]*", re.IGNORECASE)
_NO = re.compile(r"\s*no,?\s+i\s+(?:don['’]t|do\s+not)\s+know\b", re.IGNORECASE)

Verdict = Literal["right", "wrong", "no", "neither"]


@dataclass(frozen=True, slots=True)
class Correctness:
    """How an answer is held against the gold answers: by a metric of ``gnothi.metrics``, right above ``above``."""

    metric: str = "accuracy"
    above: float = 0.5

    def __call__(self, answer: str, golds: Sequence[str], choices: Sequence[str] = ()) -> bool:
        return METRICS[self.metric](as_choice(answer, choices), golds) > self.above


def judge(reply: str, golds: Sequence[str], choices: Sequence[str], correct: Correctness) -> Verdict:
    """Which of the table's rows a reply falls under. Only "Yes, I know" and "No, I don't know" are replies; case, an
    apostrophe's form and what stands between "know" and the answer do not matter."""
    if _NO.match(reply):
        return "no"
    found = _YES.match(reply)
    if not found:
        return "neither"
    return "right" if correct(read_reply(reply[found.end() :]).answer, golds, choices) else "wrong"


def reward(verdict: Verdict, acc_rate: float) -> float:
    """The table: Yes and right 2 acc - 1; Yes and wrong -1; No 1 - 2 acc. Anything else gets the lowest reward, -1."""
    if verdict == "right":
        return 2 * acc_rate - 1
    return 1 - 2 * acc_rate if verdict == "no" else -1.0
