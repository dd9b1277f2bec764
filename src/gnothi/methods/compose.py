"""Parts of other methods, combined: when to retrieve, what to keep of what is found, which answer to give."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, get_args

from gnothi.errors import InvalidSetting
from gnothi.filtering.evaluator import Strips, relevance
from gnothi.filtering.leading import Leading
from gnothi.filtering.learned import GateSource
from gnothi.filtering.self_knowledge import Informative
from gnothi.filtering.utility import DemonstrationSource, Useful
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.methods.steps.prompts import ANSWER, TASKS, USEFUL, ask, require_text
from gnothi.methods.steps.reader import SentenceSettings
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.settings import SelfKnowledge, needs_of, resource, setting
from gnothi.methods.steps.stages import Stages, decides_on_search
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.gate import Gate
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Passage, Question

Filter = Literal["none", "utility", "relevance", "pmi", "log_odds", "strinc", "lexical", "cxmi"]

JUDGED: Collection[Filter] = ("utility", "relevance", "pmi", "log_odds")
SCORED: Collection[Filter] = ("relevance", "pmi", "log_odds", "cxmi")
LIMITS: Mapping[Filter, int | None] = {"relevance": 5, "pmi": None, "log_odds": None, "strinc": 1, "lexical": 1, "cxmi": 1}
"""How many sentences a filter of sentences keeps, as its method does; None: all above the threshold."""
_USES: Mapping[str, Mapping[str, Collection[str]]] = {
    "learned": {"gate": ("learned",), "answer": ("learned",)},
    "judge": {"filter": JUDGED},
    "reference": {"filter": ("utility",)},
    "filter_threshold": {"filter": LIMITS},
    "keep": {"filter": LIMITS},
    "language": {"filter": LIMITS},
}
"""Which choices of which parts read a setting."""


def refuse_unused(method: Any) -> None:
    """Raise InvalidSetting for the first setting of ``compose`` that differs from its default and can have no effect."""
    changed = {item.name: getattr(method, item.name) for item in fields(method) if getattr(method, item.name) != item.default}
    if method.gate == "never":
        for key in ("k", "filter", "answer"):
            if key in changed:
                raise InvalidSetting(
                    f"setting {key!r}: got {changed[key]}, but gate=never retrieves nothing, so that it would have no effect; "
                    f"expected another gate, or no {key}."
                )
    if method.gate in ("never", "always") and "gate_threshold" in changed:
        raise InvalidSetting(
            f"setting 'gate_threshold': got {changed['gate_threshold']}, but gate={method.gate} measures nothing."
        )
    for key, parts in _USES.items():
        if key in changed and not any(getattr(method, part) in users for part, users in parts.items()):
            got = changed[key] if isinstance(changed[key], str | int | float) else "one"
            chosen = " with ".join(f"{part}={getattr(method, part)}" for part in parts)
            expected = " or ".join(f"{part}={' or '.join(users)}" for part, users in parts.items())
            raise InvalidSetting(f"setting {key!r}: got {got}, but {chosen} has no use for it; expected {expected}.")


OtherGate = Literal["never", "always", "learned"]


@dataclass(frozen=True, slots=True)
class Compose(SentenceSettings):
    """Any gate with any filter, and a choice between the answers."""

    model: LanguageModel
    retriever: Retriever
    judge: LanguageModel | None = resource("Model that judges for the filter.")
    reference: DemonstrationSource | None = resource("Utility reference: demonstrations for filter=utility.")
    learned: GateSource | None = resource("What tells where evidence helps, for gate=learned and answer=learned.")
    gate: OtherGate | SignalName = setting(
        "always",
        "Retrieve never, always, or where this signal of a first answer from memory is above gate_threshold; learned (cascade) "
        "where the expected gain exceeds its price.",
    )
    gate_threshold: float | None = setting(
        None,
        "Retrieve above this uncertainty, or gain with gate=learned (none: the probe's, the one calibrated on the model, the "
        "usual one, or the learnt gate's own).",
    )
    k: int = setting(5, "Passages to retrieve.", at_least=1)
    filter: Filter = setting(
        "none",
        "Keep all; passages judged useful (KEQA); sentences graded relevant (CRAG), by PMI or log-odds (SKILL-RAG), that hold "
        "a draft answer, share its words or make it likelier (FILCO).",
    )
    filter_threshold: float | None = setting(None, "Filters of sentences: keep those above this (none: 0).")
    keep: int | None = setting(
        None,
        "Filters of sentences: keep at most so many, 0 for all (none: 5 for relevance, 1 for FILCO's, all by PMI).",
        at_least=0,
    )
    answer: Literal["read", "learned"] = setting(
        "read",
        "Read what was kept; or, of that answer and the one from memory, give the one that by learned is likelier right, or "
        "neither (cascade).",
    )

    name: ClassVar[str] = "compose"
    asks_self_knowledge: ClassVar[SelfKnowledge] = SelfKnowledge("filter", "pmi", "filter=relevance")
    gating: ClassVar[GateSpec] = GateSpec("gate", "gate_threshold")

    def check_settings(self) -> None:
        refuse_unused(self)
        for part in ("gate", "answer"):
            if getattr(self, part) == "learned" and self.learned is None:
                raise InvalidSetting(
                    f"setting {part!r}: got learned, which goes by training questions, but learned is not given. Give it with "
                    "<--set learned=FOLDER>, made by `gnothi calibrate --learn`."
                )
        if self._measured is not None:
            self.gating.require(self._measured, self._gate_threshold)
        require(self.name, "judge", self.judge, Capabilities(scoring=self.filter in SCORED), ", or filter=utility")

    def check_resources(self) -> None:
        if self.gate == "learned" and self.learned is not None and not decides_on_search(self.learned):
            raise InvalidSetting(
                "setting 'gate': got learned, but that gate decides nothing before a search: it was made for searches that "
                "cost nothing. Make one with `gnothi calibrate --learn RUN --search-cost 0.02`, or use <--set gate=always>."
            )

    @property
    def needs(self) -> Capabilities:
        scores = self.filter in SCORED and not (self.judge is not None and self.filter in JUDGED)
        return needs_of(self._measured) | self.answering_needs | Capabilities(scoring=scores)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if self.gate == "never":
            return await self.read(self.model, question)
        stages = Stages(self.learned, self, self.model, question, self._gate_threshold, searching=self.gate == "learned")
        if self.gate == "learned":
            drafted = await stages.draft()
            if not stages.going_on:
                return stages.answer(drafted) if self.answer == "learned" else drafted
        elif self._measured is not None:
            prompt, reuses = self.reading(question), self.answer == "learned" and self._measured == self._reading_signal
            gate = Gate(self.make_signal(self._measured), self._gate_threshold, draft=reuses)
            verdict = await gate(self.model, prompt, self.reply_decoding(prompt))
            if not verdict.fired:
                return await self.answer_from(self.model, prompt, verdict.measured)
            stages.measured = verdict.measured if reuses else None
        found = await self.retriever.search(question.text, self.k)
        if self.answer == "learned":
            return await stages.better(found, self._from_passages)
        return await self._from_passages(question, tuple(one.passage for one in found))

    async def _from_passages(self, question: Question, found: Sequence[Passage]) -> Answer:
        return await self.read(self.model, question, await self._kept(question, found))

    async def _kept(self, question: Question, found: Sequence[Passage]) -> Sequence[Passage]:
        judge, threshold = self.judge or self.model, self.filter_threshold or 0.0
        most = LIMITS.get(self.filter) if self.keep is None else self.keep or None
        if self.filter == "utility":
            return await Useful(judge, USEFUL, self.reference)(question.text, found)
        if self.filter == "relevance":
            return await Strips(self._grades, "useful", threshold, most, self.language)(question, found)
        if self.filter in ("pmi", "log_odds"):
            task = TASKS["know" if self.filter == "pmi" else "useful"]
            return await Informative(judge, task, threshold, most=most, language=self.language)(question, found)
        if self.filter in ("strinc", "lexical", "cxmi"):
            targets = await self.draft(self.model, question, found)
            leading = Leading(self.filter, self.model, threshold, most, self.language)
            return await leading(question, ask(ANSWER, question), found, targets) if targets else found
        return self.found(question, found)

    async def _grades(self, question: Question, passages: Sequence[Passage]) -> Sequence[float]:
        return await relevance(self.judge or self.model, USEFUL, question.text, passages)

    # --- settings ------------------------------------------------------------------------------------------------------

    @property
    def _measured(self) -> SignalName | None:
        """The gate's signal; None where the gate measures none."""
        return None if self.gate in get_args(OtherGate) else self.gate

    @property
    def _gate_threshold(self) -> float | None:
        if self._measured is None and self.gate_threshold is None:
            return self.model.profile.thresholds.get(self.gate)
        return threshold_of(self.model.profile.thresholds, self._measured, self.gate_threshold, self.probe)

    @property
    def _reading_signal(self) -> str:
        return self.make_signal(self.signal).name
