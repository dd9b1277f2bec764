"""SKR: self-knowledge guided retrieval (Wang et al. 2023, arXiv 2310.05002), in its nearest-neighbour form.

Whether the model knows is told by the training questions most like this one: could it answer those from memory?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.fields import resource, setting
from gnothi.filtering.knowledge import KnowledgeSource
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.searching import search
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Prompt, Question


@dataclass(frozen=True, slots=True)
class SelfKnowledgeGuided(ReaderSettings):
    """Retrieves when the model could not answer the training questions most like this one."""

    model: LanguageModel
    retriever: Retriever
    reference: KnowledgeSource | None = resource("Training questions that the model knew or not.", required=True)
    k: int = setting(3, "Passages to retrieve.", at_least=1)
    neighbours: int = setting(10, "Training questions to compare with.", at_least=1)
    votes: Literal["lead", "share"] = setting(
        "lead",
        "The commoner kind of training questions wins among the neighbours by a lead (the authors' code); share: retrieve "
        "where unknown ones are commoner among them than among all (the paper).",
    )

    name: ClassVar[str] = "skr"
    usual_tokens: ClassVar[int] = 1_500

    async def __call__(self, question: Question) -> Answer:
        return await self.reply(self.model, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked: the question behind what was found, or alone where its neighbours vote so."""
        require_text(question)
        assert self.reference is not None
        near = await self.reference.neighbours(question.text, self.neighbours)
        excess = near.short_of(self.neighbours) if self.votes == "lead" else near.above_share
        events.emit(events.Decided("retrieve", "neighbours", excess, 0.0, "retrieve" if excess > 0.0 else "trust"))
        if excess <= 0.0:
            return self.reading(question)
        passages = await search(self.retriever, question.text, self.k)
        return self.reading(question, self.selected(question, passages))
