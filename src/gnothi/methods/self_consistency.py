"""Self-consistency (Wang et al. 2022, arXiv 2203.11171): of many sampled chains of thought the majority decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi import events
from gnothi.fields import setting
from gnothi.methods.steps.chain import conclude_each, only_repeats
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import ask, reasoning
from gnothi.methods.steps.settings import CHAIN_STOPS, SHORT_STOPS, MethodSettings
from gnothi.protocols import LanguageModel
from gnothi.signals.grouping import Groups
from gnothi.types import Answer, Decoding, Question


@dataclass(frozen=True, slots=True)
class SelfConsistency(MethodSettings):
    """Samples several chains of thought from memory and gives the answer that most of them come to."""

    model: LanguageModel
    paths: int = setting(40, "Chains of thought to sample.", at_least=1)
    temperature: float = setting(0.7, "Temperature of the chains.", at_least=0.01)
    top_k: int = setting(40, "Chains draw from this many likeliest tokens (0: all).", at_least=0)
    top_p: float = setting(
        1.0, "Chains draw from the likeliest tokens that make up this probability.", at_least=0.0, at_most=1.0
    )
    demonstrations: bool = setting(True, "Show worked examples; false: zero-shot, only told to think step by step.")

    name: ClassVar[str] = "self_consistency"

    async def __call__(self, question: Question) -> Answer:
        prompt = ask(reasoning(self.demonstrations), question)
        decoding = Decoding(self.max_tokens, self.temperature, self.top_k, self.top_p, CHAIN_STOPS)
        chains = [chain.text for chain in (await self.model.sample(prompt, self.paths, decoding)).generations]
        conclusions = await conclude_each(self.model, prompt, chains, self.decoding(SHORT_STOPS), self.extraction)
        texts = [as_choice(conclusion.answer, question.choices) for conclusion in conclusions]
        # A chain that ends in what it was asked about came to no answer, as one that says that it does not know.
        answers = ["" if only_repeats(answer, question) else answer for answer in texts]
        groups = await self._vote(question, answers)
        # Ties go to the answer that was given first, whose chain stands for all that came to it.
        winner = groups.largest
        if winner is None:
            repeated = next((place for place, answer in enumerate(texts) if answer and not answers[place]), None)
            if repeated is None:
                return Answer("", conclusions[0].rationale)
            stands = Answer(texts[repeated], conclusions[repeated].rationale)
            return await self.reread(self.model, question, stands)
        chain = conclusions[answers.index(winner.anchor)]
        return Answer(winner.anchor, chain.rationale, uncertainty=1.0 - winner.size / self.paths)

    async def _vote(self, question: Question, answers: list[str]) -> Groups:
        """The answers by form; those that say nothing have no vote, but count in the denominator."""
        groups = Groups()
        for answer in answers:
            await groups.add(answer)
        counts = tuple((group.anchor, group.size) for group in sorted(groups.groups, key=lambda group: -group.size))
        events.emit(events.Grouped(question.text, counts, groups.unknown, self.paths))
        return groups
