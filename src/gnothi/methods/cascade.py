"""A learnt gate of Gnothi: it decides in stages whether a search is worth its cost and which answer to trust.

``gnothi calibrate --learn`` learns it from a run of this very method without a gate, which goes to the end and records what is
known at each stage, beside a run of a method that answers from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi.fields import resource, setting
from gnothi.filtering.learned import GateSource
from gnothi.methods.ircot import IRCoT
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.stages import Stages
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Capabilities, Passage, Question


@dataclass(frozen=True, slots=True)
class LearnedCascade(ReaderSettings):
    """An answer from memory, a search, an answer from evidence: as far as a learnt gate finds it worth while; then the better
    answer of the two, or none. Without a gate it goes to the end, answers from evidence, and records what was known when."""

    model: LanguageModel
    retriever: Retriever
    learned: GateSource | None = resource("What tells where evidence helps; none: go through all stages and record them.")
    read_by: Literal["auto", "steps", "once"] = setting(
        "auto", "Read passages in turns with further searches (IRCoT), or once; auto: once where `reason` asks for no chain."
    )
    k: int = setting(2, "Passages per retrieval.", at_least=1)
    max_steps: int = setting(8, "In steps: sentences of the chain.", at_least=1)
    max_passages: int = setting(15, "In steps: passages collected over all of them.", at_least=1)

    name: ClassVar[str] = "cascade"

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        stages = Stages(self.learned, self, self.model, question)
        memory = await stages.draft()
        if not stages.going_on:
            return stages.answer(memory)
        passages = await self.retriever.search(question.text, self.k)
        return await stages.better(passages, self._from)

    async def _from(self, question: Question, passages: tuple[Passage, ...]) -> Answer:
        once = self.read_by == "auto" and not self.reasons(question, passages)
        if once or self.read_by == "once":
            return await self.read(self.model, question, self.selected(question, passages))
        steps = IRCoT(
            self.model,
            self.retriever,
            k=self.k,
            max_steps=self.max_steps,
            max_passages=self.max_passages,
            max_tokens=self.max_tokens,
            extract=self.extract,
            extra_calls=self.extra_calls,
        )
        return await steps.going_on(question, passages)
