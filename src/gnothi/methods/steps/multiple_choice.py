"""Multiple choice by likelihood: which of the choices would the model say, whatever it would say if it were free to.

All choices are scored in one request, so that a backend reads what precedes them once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Literal

import numpy as np

from gnothi import events
from gnothi.errors import InvalidInput
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from gnothi.types import ContinuationScore, Prompt

ChoiceScore = Literal["sum", "tokens", "characters", "label"]
LABELS = ascii_uppercase


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice of highest score, and the probability of each choice, in their order: the softmax of the scores."""

    text: str
    probabilities: tuple[float, ...]

    @property
    def uncertainty(self) -> float:
        """1 minus the probability of the chosen one: 0 is certain, 1 - 1/n a draw between n."""
        return 1.0 - max(self.probabilities)


def scores_of(choices: Sequence[str], scored: Sequence[ContinuationScore], by: ChoiceScore) -> list[float]:
    """One number for each choice (nats), from the log-probabilities of its tokens: their sum, or that divided by the number of
    tokens or of the choice's characters. A choice without tokens cannot be said: minus infinity."""
    if by == "characters":
        lengths = [len(choice) for choice in choices]
    else:
        lengths = [len(one.logprobs) if by == "tokens" else 1 for one in scored]
    return [one.logprob / length if one.logprobs else -math.inf for one, length in zip(scored, lengths, strict=True)]


def softmax(scores: Sequence[float]) -> tuple[float, ...]:
    """Probabilities that sum to 1; equal ones where no score is finite."""
    values = np.asarray(scores, dtype=float)
    if not np.isfinite(values).any():
        return (1.0 / len(values),) * len(values)
    weights = np.exp(values - values.max())
    return tuple((weights / weights.sum()).tolist())


async def choose(model: LanguageModel, prompt: Prompt, by: ChoiceScore) -> Chosen:
    """The likeliest of the prompt's choices as what continues it; the first of equally likely ones.

    ``label``: the choices are shown as "A. ...", "B. ...", and their letters are compared. Emits Ranked with kind ``choice``,
    the negative logarithm of each one's probability as its score. Raises InvalidInput for more choices than letters.
    """
    choices = prompt.choices
    continuations: Sequence[str] = choices
    if by == "label":
        continuations = _labels(choices)
        labelled = tuple(f"{label}. {choice}" for label, choice in zip(continuations, choices, strict=True))
        prompt = replace(prompt, choices=labelled)
    scores = scores_of(choices, await model.score(prompt, continuations), by)
    probabilities = softmax(scores)
    order = sorted(range(len(choices)), key=lambda place: -probabilities[place])
    ranked = tuple((LABELS[place : place + 1], choices[place], _surprisal(probabilities[place])) for place in order)
    events.emit(events.Ranked("choice", ranked))
    return Chosen(choices[order[0]], probabilities)


class WithoutChoices(Wrapper):
    """A model that is never shown the choices: it reasons as about an open question, and each choice is scored as what it might
    say next. (For models that go astray among choices, as base models do.)"""

    def _rewritten(self, prompt: Prompt) -> Prompt:
        return replace(prompt, choices=())


def _labels(choices: Sequence[str]) -> str:
    if len(choices) > len(LABELS):
        raise InvalidInput(
            f"got a question of {len(choices)} choices, expected at most {len(LABELS)}: there are no more letters. "
            "Score their texts instead: <--set choice_score=tokens>."
        )
    return LABELS[: len(choices)]


def _surprisal(probability: float) -> float | None:
    return -math.log(probability) if probability > 0 else None
