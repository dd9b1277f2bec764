"""GKP: generated-knowledge prompting (Liu et al. 2021, arXiv 2110.08387).

A model writes statements that may help, from memory. The question is answered with each of them before it, and without any; the
answer that is surest with its statement is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from gnothi.concurrency import gather
from gnothi.fields import resource, setting
from gnothi.filtering.least_uncertain import Candidate, least_uncertain
from gnothi.methods.steps.answering import AnsweringSettings
from gnothi.methods.steps.multiple_choice import ChoiceScore, choose
from gnothi.methods.steps.parsing import as_choice, until_it_repeats
from gnothi.methods.steps.prompts import ANSWER, KNOWLEDGE, ask
from gnothi.methods.steps.reflection import admits_ignorance
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.protocols import LanguageModel
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.types import Answer, Capabilities, Decoding, Passage, Prompt, Question

SCORING = Capabilities(logprobs=True, scoring=True)


@dataclass(frozen=True, slots=True)
class GeneratedKnowledge(AnsweringSettings):
    """Writes statements about the question, answers with each, and takes the surest answer."""

    model: LanguageModel
    reader: LanguageModel | None = resource("Model that answers.")
    statements: int = setting(20, "M: statements to write; equal ones count once.", at_least=1)
    knowledge_tokens: int = setting(64, "Tokens a statement may have.", at_least=1)
    knowledge_temperature: float = setting(1.0, "Temperature of the statements.", at_least=0.01)
    knowledge_top_p: float = setting(
        0.5, "Statements draw from the likeliest tokens of this probability.", at_least=0.0, at_most=1.0
    )
    _: KW_ONLY
    choice_score: ChoiceScore = setting(
        "sum", "Likelihood of a choice: log-probability summed, per token or per character; or that of its label (A, B, ...)."
    )

    name: ClassVar[str] = "gkp"
    usual_tokens: ClassVar[int] = 8_000

    @property
    def needs(self) -> Capabilities:
        return SCORING if self.reader is None else Capabilities()

    def check_resources(self) -> None:
        """Raise MissingCapability for a reader that cannot tell how sure it is."""
        require(self.name, "reader", self.reader, SCORING)

    async def __call__(self, question: Question) -> Answer:
        statements = await self._write(question)
        answers = await gather(
            *(self._answer(question, evidence) for evidence in ((), *((statement,) for statement in statements)))
        )
        best = least_uncertain(answers)
        return Answer(best.text, "", best.evidence, best.score)

    async def _write(self, question: Question) -> Sequence[Passage]:
        """The different statements that say something, in the order they came: about the question, without its choices."""
        decoding = Decoding(self.knowledge_tokens, self.knowledge_temperature, top_p=self.knowledge_top_p, stop=SHORT_STOPS)
        samples = await self.model.sample(ask(KNOWLEDGE, replace(question, choices=())), self.statements, decoding)
        texts = dict.fromkeys(" ".join(one.text.split()) for one in samples.generations)
        known = [text for text in texts if not admits_ignorance(text)]
        return [Passage(f"statement {number}", text) for number, text in enumerate(known, start=1)]

    async def _answer(self, question: Question, evidence: tuple[Passage, ...]) -> Candidate:
        """The answer with a statement, or without; of choices the likeliest one."""
        prompt: Prompt = ask(ANSWER, question, evidence)
        reader, source = self.reader or self.model, evidence[0].id if evidence else "memory"
        if question.choices:
            choice = await choose(reader, prompt, self.choice_score)
            return Candidate(source, choice.text, choice.uncertainty, evidence=evidence)
        measured = await Perplexity().measure(reader, prompt, self.decoding(SHORT_STOPS))
        reply = " ".join(measured.greedy.text.split())
        once = until_it_repeats(reply)
        text = as_choice(self.extraction.short(once, question.text), question.choices)
        # What goes round in circles is surer of itself with every round.
        uncertainty = measured.uncertainty if once == reply else math.inf
        return Candidate(source, text, uncertainty, evidence=evidence)
