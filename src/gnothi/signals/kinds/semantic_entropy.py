"""Entropy of the meanings of sampled continuations (Farquhar et al. 2024, Nature 630; first Kuhn et al. 2023).

Samples are grouped by whether two of them entail each other, which the model itself is asked, both ways round, or an NLI
cross-encoder (``signal.entailment``). A group's probability is the share of its samples where only texts are given (their
discrete form), and else the sum of their length-normalised probabilities, of all groups' (their equation 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gnothi.prompts.sets import shipped
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Continued, FollowUp, Sampling
from gnothi.signals.entailment import Entailment
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Capabilities, Generation, Prompt

SAME = shipped()["equivalent"]


def semantic_entropy(groups: Sequence[int], logprobs: Sequence[float] | None = None) -> float:
    """In nats, of samples by the number of their group; infinity for none. ``logprobs``: the mean log-probability of the tokens
    of each; None: by counts alone."""
    if not groups:
        return float("inf")
    weights = np.ones(len(groups)) if logprobs is None else np.exp(np.asarray(logprobs) - max(logprobs))
    shares = np.bincount(np.asarray(groups), weights) / weights.sum()
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum()) + 0.0


@dataclass(frozen=True, slots=True)
class SemanticEntropy(FollowUp):
    """Texts that are equal but for case, punctuation and articles are not asked about; a new one is compared with the first of
    each group."""

    sampling: Sampling = field(default_factory=Sampling)
    entailment: Entailment | None = None

    name: ClassVar[str] = "semantic_entropy"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 0.7  # about two meanings, equally likely; a guess

    async def ask(self, model: LanguageModel, prompt: Prompt, continued: Continued) -> float:
        samples = continued.samples.generations
        if all(says_nothing(one.text) for one in samples):
            return float("inf")
        firsts: list[str] = []
        group_of: dict[str, int] = {}
        for text in (one.text.strip() for one in samples):
            form = normalized(text)
            if form in group_of:
                continue
            same = []
            for n, first in enumerate(firsts):
                if (first, text) not in continued.verdicts:
                    continued.verdicts[first, text] = await self._same(model, prompt.question, first, text)
                same += [n] if continued.verdicts[first, text] else []
            group_of[form] = same[0] if same else len(firsts)
            firsts += [] if same else [text]
        return semantic_entropy([group_of[normalized(one.text.strip())] for one in samples], _likelihoods(model, samples))

    async def _same(self, model: LanguageModel, question: str, first: str, second: str) -> bool:
        if not (normalized(first) and normalized(second)):
            return False
        if self.entailment is not None:
            return all(await self.entailment.entail([(f"{question} {a}", f"{question} {b}") for a, b in _ways(first, second)]))
        for way in _ways(first, second):
            if not await says_yes(model, Prompt(SAME, question, choices=way)):
                return False
        return True


def _ways(first: str, second: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (first, second), (second, first)


def _likelihoods(model: LanguageModel, samples: Sequence[Generation]) -> list[float] | None:
    """Mean log-probabilities of the tokens; None where the model does not give them."""
    if not (model.capabilities.logprobs and all(one.tokens for one in samples)):
        return None
    return [one.logprob / len(one.tokens) for one in samples]
