"""SKILL-RAG: self-knowledge induced learning and filtering (Isoda 2025, arXiv 2509.20377, an unreviewed preprint).

What is found is filtered sentence by sentence: one stays if the model, having read it, is surer that it knows the answer
(section 4.3). A model learns to say what it knows by ``gnothi train self-knowledge`` (sections 4.1 and 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.filtering.self_knowledge import Informative
from gnothi.methods.prompts import TASKS, require_text
from gnothi.methods.reader import ReaderSettings
from gnothi.methods.settings import check_ranges, needs_of, resource, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals import registry as signals
from gnothi.signals.registry import SignalName
from gnothi.signals.threshold import Gate
from gnothi.types import Answer, Capabilities, Question

SCORING = Capabilities(scoring=True)


@dataclass(frozen=True, slots=True)
class SkillRAG(ReaderSettings):
    """Reads only those sentences that make the model surer that it knows the answer; none left: answers from memory."""

    model: LanguageModel
    retriever: Retriever
    judge: LanguageModel | None = resource("Model that says whether it knows, and so filters.")
    k: int = setting(5, "Passages to retrieve.", at_least=1)
    threshold: float = setting(0.0, "A sentence stays when its PMI, or log-odds (nats), is above this.")
    task: Literal["know", "useful"] = setting(
        "know", "What Yes answers: do you know? By PMI; for a model not trained to say so: is this useful? By log-odds."
    )
    odds: bool = setting(
        False,
        "With task=know: the gain in log-odds of Yes against No, not in log P(Yes), which has no room where that is near 1.",
    )
    normalise: bool = setting(False, "P(Yes) among Yes and No; false: among all texts.")
    titles: bool = setting(True, "Show a sentence under the title of its passage.")
    in_order: bool = setting(True, "Sentences stay in their order; false: the best first.")
    at_least: int = setting(
        0, "Keep at least so many sentences; 1: the best one where none is above the threshold.", at_least=0
    )
    per_passage: int | None = setting(None, "Keep at most so many sentences of a passage (none: all).", at_least=1)
    language: str = setting("en", "Language of the passages, for abbreviations and numbers at the ends of sentences.")
    gate: SignalName | None = setting(
        None, "Ask first, and retrieve only where this signal says uncertain (self_report: 1 - P(Yes)); none: always retrieve."
    )
    gate_threshold: float | None = setting(
        None, "Retrieve above this uncertainty (none: as calibrated on the model, else the signal's usual one)."
    )

    name: ClassVar[str] = "skill_rag"

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.gate is not None and self._gate_threshold is None:
            raise InvalidSetting(
                f"setting 'gate_threshold': got none, but signal {self.gate!r} has no usual threshold. "
                "Give one with --set gate_threshold=..., chosen from the scores of earlier runs."
            )
        if self.judge is not None and (lacking := self.judge.capabilities.lacking(SCORING)):
            raise MissingCapability(self.name, self.judge.name, lacking, "Give another judge with --set judge=MODEL.")

    @property
    def needs(self) -> Capabilities:
        own = SCORING if self.judge is None else Capabilities()
        return own | needs_of(self.signal) | needs_of(self.gate)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if self.gate is not None:
            prompt = self.reading(question)
            gate = Gate(self.make_signal(self.gate), self._gate_threshold)
            verdict = await gate(self.model, prompt, self.reply_decoding)
            if not verdict.fired:
                return await self.answer(self.model, question, prompt, verdict.measured)
        found = [scored.passage for scored in await self.retriever.search(question.text, self.k)]
        kept = await self._filter(question, found)
        return await self.read(self.model, question, kept)

    @property
    def _filter(self) -> Informative:
        return Informative(
            self.judge or self.model,
            TASKS[self.task],
            self.threshold,
            self.normalise,
            self.titles,
            self.in_order,
            self.at_least,
            self.per_passage,
            self.language,
            self.odds,
        )

    @property
    def _gate_threshold(self) -> float | None:
        """As set, else as calibrated on the model, else the signal's usual one."""
        if self.gate is None or self.gate_threshold is not None:
            return self.gate_threshold
        return self.model.thresholds.get(self.gate, signals.find(self.gate).default_threshold)
