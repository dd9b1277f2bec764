"""What the model says when asked whether it knows: the probability of "Yes" (Kadavath et al. 2022; SKILL-RAG, section 3).

It is asked about the whole question, with the passages of the prompt: a chain of thought begun so far plays no part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gnothi.prompts.sets import shipped
from gnothi.protocols import LanguageModel
from gnothi.signals.base import PromptSignal
from gnothi.types import Capabilities, Prompt

KNOW = shipped()["know"]
AFFIRMATIVE = "Yes"
NEGATIVE = "No"


def probability_of_yes(affirmative: float, negative: float) -> float:
    """P("Yes") among the two replies, from their log-probabilities; 0.5 when both are impossible."""
    difference = negative - affirmative
    if math.isnan(difference):  # both -inf
        return 0.5
    return 1.0 / (1.0 + math.exp(difference)) if difference < 700 else 0.0


def know_prompt(prompt: Prompt) -> Prompt:
    """The prompt's question, with its passages, as a question whether the model knows the answer."""
    return Prompt(KNOW, prompt.question, prompt.passages, prompt.choices)


@dataclass(frozen=True, slots=True)
class SelfReport(PromptSignal):
    """1 - P("Yes"), by scoring the first words of both replies."""

    name: ClassVar[str] = "self_report"
    needs: ClassVar[Capabilities] = Capabilities(scoring=True)
    default_threshold: ClassVar[float | None] = 0.5

    async def from_prompt(self, model: LanguageModel, prompt: Prompt) -> float:
        affirmative, negative = await model.score(know_prompt(prompt), (AFFIRMATIVE, NEGATIVE))
        return 1.0 - probability_of_yes(affirmative.logprob, negative.logprob)
