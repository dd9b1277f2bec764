"""SlimPLM: a slim proxy decides (Tan et al. 2024, arXiv 2402.12052): a small model tries first, and says what to look for.

Its heuristic answer is judged known or not. Known: the large model answers from memory. Not: the claims of the heuristic
answer become queries beside the question, except for those that are known themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi.fields import resource, setting
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.queries import uncertain_claims
from gnothi.methods.steps.reader import ReaderSettings, asks_for_chain
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.searching import in_turns
from gnothi.methods.steps.settings import needs_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.gate import Gate
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Question


@dataclass(frozen=True, slots=True)
class SlimPLM(ReaderSettings):
    """A small model tries first: whether it knows decides whether to retrieve, and its claims are what to look for."""

    model: LanguageModel
    retriever: Retriever
    proxy: LanguageModel | None = resource("Small model that tries first.")
    judgement: SignalName = setting("least_likely", "What tells, of its heuristic answer, whether the proxy knows.")
    threshold: float | None = setting(
        None, "Retrieve above this uncertainty (none: as calibrated on the proxy, else the signal's usual one)."
    )
    claims: bool = setting(True, "Search for the claims of the heuristic answer, too; false: for the question alone.")
    certainty: float = setting(
        0.9,
        "A claim is known, and not searched for, when no token of it is less probable than this.",
        at_least=0.0,
        at_most=1.0,
    )
    k: int = setting(5, "Passages to read, of all queries together.", at_least=1)

    name: ClassVar[str] = "slimplm"
    usual_tokens: ClassVar[int] = 3_000
    gating: ClassVar[GateSpec] = GateSpec("judgement", "threshold", "proxy")

    def check_settings(self) -> None:
        self.gating.require(self.judgement, self._threshold)
        require(self.name, "proxy", self.proxy, needs_of(self.judgement), ", or <--set judgement=consistency>")

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs | (needs_of(self.judgement) if self.proxy is None else Capabilities())

    @property
    def searches_draft(self) -> bool:
        return self.claims

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        prompt = self.reading(question)
        gate = Gate(self.make_signal(self.judgement), self._threshold)
        verdict = await gate(self.proxy or self.model, prompt, self.reply_decoding(prompt))
        if not verdict.fired and self.proxy is None:
            return await self.answer_from(self.model, prompt, verdict.measured)
        if not verdict.fired:
            return await self.read(self.model, question)
        claims = uncertain_claims(verdict.measured.greedy, self.certainty) if self.claims and asks_for_chain(prompt) else []
        passages = await in_turns(self.retriever, [question.text, *claims], self.k)
        return await self.read(self.model, question, passages)

    @property
    def _threshold(self) -> float | None:
        """As set, else the probe's own, else as calibrated on the proxy, else the signal's usual one."""
        return threshold_of((self.proxy or self.model).profile.thresholds, self.judgement, self.threshold, self.probe)
