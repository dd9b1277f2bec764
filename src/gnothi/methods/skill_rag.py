"""SKILL-RAG: self-knowledge induced learning and filtering (Isoda 2025, arXiv 2509.20377, an unreviewed preprint).

What is found is filtered sentence by sentence: one stays if the model, having read it, is surer that it knows the answer
(section 4.3). A model learns to say what it knows by ``gnothi train self-knowledge`` (sections 4.1 and 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi.fields import resource, setting
from gnothi.filtering.self_knowledge import Informative
from gnothi.methods.steps.from_memory import GatedSettings
from gnothi.methods.steps.prompts import TASKS, require_text
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import SelfKnowledge, needs_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Capabilities, Prompt, Question

SCORING = Capabilities(scoring=True)


@dataclass(frozen=True, slots=True)
class SkillRAG(GatedSettings):
    """Reads only those sentences that make the model surer that it knows the answer; none left: answers from memory."""

    model: LanguageModel
    retriever: Retriever
    judge: LanguageModel | None = resource("Model that says whether it knows, and so filters.")
    k: int = setting(5, "Passages to retrieve.", at_least=1)
    threshold: float = setting(0.0, "A sentence stays when its PMI, or log-odds (nats), is above this.")
    task: Literal["know", "useful"] = setting(
        "know", "What Yes answers: do you know? By PMI; for a model not trained to say so: is this useful? By log-odds."
    )
    titles: bool = setting(True, "Show a sentence under the title of its passage.")
    language: str = setting("en", "Language of the passages, for abbreviations and numbers at the ends of sentences.")

    name: ClassVar[str] = "skill_rag"
    usual_tokens: ClassVar[int] = 12_000
    asks_self_knowledge: ClassVar[SelfKnowledge] = SelfKnowledge("task", "know", "task=useful")

    def check_settings(self) -> None:
        self.check_gate(self.model.profile.thresholds)
        require(self.name, "judge", self.judge, SCORING)

    @property
    def needs(self) -> Capabilities:
        own = SCORING if self.judge is None else Capabilities()
        return own | self.answering_needs | needs_of(self.gate)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        known = await self.from_memory(self.model, question)
        return known or await self.reply(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked where it retrieves: the question, behind the sentences that were kept."""
        require_text(question)
        passages = await search(self.retriever, question.text, self.k)
        return self.reading(question, await self._filter(question, passages))

    @property
    def _filter(self) -> Informative:
        return Informative(self.judge or self.model, TASKS[self.task], self.threshold, self.titles, self.language)
