"""Parts of the other methods, freely combined: when to retrieve, with which query, what to keep, how to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.filtering.answers import Candidate, least_uncertain
from gnothi.filtering.best import Best
from gnothi.filtering.demonstrations import DemonstrationSource
from gnothi.filtering.evaluator import relevance
from gnothi.filtering.leading import Leading
from gnothi.filtering.self_knowledge import Informative
from gnothi.filtering.strips import Strips
from gnothi.filtering.uncertainty import LeastUncertain
from gnothi.filtering.utility import Useful
from gnothi.methods.gating import Gating, threshold_of
from gnothi.methods.prompts import ANSWER, TASKS, USEFUL, ask, require_text
from gnothi.methods.queries import keywords, query_from_draft
from gnothi.methods.reader import ReaderSettings
from gnothi.methods.reflection import query as expanded
from gnothi.methods.reflection import reflect, subjects
from gnothi.methods.settings import check_ranges, needs_of, resource, setting
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.signals.base import Measured, Signal
from gnothi.signals.gate import Gate
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Passage, Question

Filter = Literal["none", "uncertainty", "utility", "rerank", "relevance", "pmi", "log_odds", "strinc", "lexical", "cxmi"]
JUDGED = ("utility", "relevance", "pmi", "log_odds")
SCORED = ("relevance", "pmi", "log_odds", "cxmi")
LIMITS: dict[Filter, tuple[float, int | None]] = {
    "rerank": (0.0, 3),
    "relevance": (0.1, 5),
    "pmi": (0.0, None),
    "log_odds": (0.0, None),
    "strinc": (0.0, 1),
    "lexical": (0.0, 1),
    "cxmi": (0.0, 1),
}
"""The threshold of a filter (of sentences) and the number kept, as their methods have them; other filters have neither."""
SENTENCES = tuple(name for name in LIMITS if name != "rerank")


@dataclass(frozen=True, slots=True)
class Compose(ReaderSettings):
    """Any gate with any query, filter and way of answering."""

    model: LanguageModel
    retriever: Retriever
    judge: LanguageModel | None = resource("Model that judges for the filter.")
    reranker: Reranker | None = resource("Cross-encoder for filter=rerank.")
    graph: KnowledgeGraph | None = resource("What tells the question's entities for query=reflection.")
    reference: DemonstrationSource | None = resource("Utility reference: demonstrations for filter=utility.")
    gate: Literal["never", "always", SignalName] = setting(
        "always", "Retrieve never, always, or where this signal of a first answer from memory is above gate_threshold."
    )
    gate_threshold: float | None = setting(
        None,
        "Retrieve above this uncertainty (none: the probe's, the one calibrated on the model, or the usual one).",
    )
    query: Literal["question", "keywords", "draft", "reflection"] = setting(
        "question",
        "Search for the question, its content words, the certain words of an answer from memory (SeaKR), or the question and "
        "what the model knows about its entities (IEKR).",
    )
    certainty: float = setting(
        0.9, "query=draft: probability from which a word belongs in the query.", at_least=0.0, at_most=1.0
    )
    k: int = setting(5, "Passages to retrieve.", at_least=1)
    filter: Filter = setting(
        "none",
        "Keep all; the passage of least uncertainty (SeaKR); passages judged useful (KEQA), or best by a re-ranker or shared "
        "words (IEKR); sentences graded relevant (CRAG), by PMI or log-odds (SKILL-RAG), that hold a draft answer, share its "
        "words or make it likelier (FILCO).",
    )
    filter_threshold: float | None = setting(
        None, "Filters of sentences: keep those above this (none: 0.1 for relevance, 0 for the others)."
    )
    keep: int | None = setting(
        None,
        "Filters of sentences, and rerank: keep at most so many, 0 for all (none: 3 for rerank, 5 for relevance, 1 for "
        "FILCO's, all by PMI).",
        at_least=0,
    )
    answer: Literal["read", "surer"] = setting(
        "read", "Read what was kept; or of that answer and the one from memory take the surer one (SeaKR)."
    )
    language: str = setting("en", "Language of the passages, for abbreviations and numbers at the ends of sentences.")

    name: ClassVar[str] = "compose"
    gating: ClassVar[Gating] = Gating("gate", "gate_threshold")

    def __post_init__(self) -> None:
        check_ranges(self)
        if self._signal is not None:
            self.gating.require(self._signal, self._gate_threshold)
        if self._signal is None and self.gate_threshold is not None:
            raise InvalidSetting(f"setting 'gate_threshold': got {self.gate_threshold}, but gate={self.gate} measures nothing.")
        if self.judge is not None:
            self._check_judge(self.judge)
        if self.reference is not None and self.filter != "utility":
            raise InvalidSetting(f"setting 'reference': got one, but filter={self.filter} asks none; expected filter=utility.")
        if self.reranker is not None and self.filter != "rerank":
            raise InvalidSetting(f"setting 'reranker': got one, but filter={self.filter} asks none; expected filter=rerank.")
        for key, users in (("filter_threshold", SENTENCES), ("keep", tuple(LIMITS))):
            if getattr(self, key) is not None and self.filter not in users:
                raise InvalidSetting(
                    f"setting {key!r}: got {getattr(self, key)}, but filter={self.filter} has no use for it; expected one of "
                    f"{', '.join(users)}."
                )

    def _check_judge(self, judge: LanguageModel) -> None:
        if self.filter not in JUDGED:
            raise InvalidSetting(
                f"setting 'judge': got one, but filter={self.filter} asks none; expected one of {', '.join(JUDGED)}."
            )
        wanted = Capabilities(scoring=self.filter in SCORED)
        if lacking := judge.capabilities.lacking(wanted):
            raise MissingCapability(
                self.name, judge.name, lacking, "Give another judge with --set judge=MODEL, or filter=utility."
            )

    @property
    def needs(self) -> Capabilities:
        judged_elsewhere = self.judge is not None and self.filter in JUDGED
        compares = self.filter == "uncertainty" or self.answer == "surer"
        return (
            needs_of(self._signal)
            | self.answering_needs
            | needs_of("perplexity" if compares and self.signal is None else self.signal)
            | Capabilities(scoring=self.filter in SCORED and not judged_elsewhere)
        )

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if self.gate == "never":
            return await self.read(self.model, question)
        prompt, memory = self.reading(question), None
        if self._signal is not None:
            drafts = self.query == "draft" or self.answer == "surer"
            gate = Gate(self.make_signal(self._signal), self._gate_threshold, draft=drafts)
            verdict = await gate(self.model, prompt, self.reply_decoding)
            memory = verdict.measured
            if not verdict.fired:
                return await self.answer_from(self.model, prompt, memory)
        query = await self._query(question, memory)
        found = [scored.passage for scored in await self.retriever.search(query, self.k)]
        if self.answer == "read":
            return await self._from_passages(question, found)
        return await self._surer(question, memory, found)

    # --- parts ---------------------------------------------------------------------------------------------------------

    async def _query(self, question: Question, memory: Measured | None) -> str:
        if self.query == "question":
            return question.text
        if self.query == "keywords":
            return keywords(question.text)
        if self.query == "reflection":
            internal = await reflect(self.model, await subjects(self.graph, question), self.max_tokens)
            return expanded(question, internal)
        draft = memory.greedy if memory else await self.model.generate(self.reading(question), self.reply_decoding)
        return query_from_draft(draft, question.text, certainty=self.certainty)

    async def _from_passages(self, question: Question, found: Sequence[Passage]) -> Answer:
        if self.filter == "uncertainty" and found:
            choose = LeastUncertain(self._reading_signal)
            best = await choose(self.model, self.reading(question), found, self.reply_decoding)
            return await self.answer_from(self.model, self.reading(question, (best.passage,)), best.measured)
        return await self.read(self.model, question, await self._kept(question, found))

    async def _kept(self, question: Question, found: Sequence[Passage]) -> Sequence[Passage]:
        judge = self.judge or self.model
        threshold, most = self._limits
        if self.filter == "utility":
            return await Useful(judge, USEFUL, self.reference)(question.text, found)
        if self.filter == "rerank":
            return await Best(self.reranker, most)(question.text, found)
        if self.filter == "relevance":
            return await Strips(self._grades, "useful", threshold, most, self.language)(question, found)
        if self.filter in ("pmi", "log_odds"):
            task = TASKS["know" if self.filter == "pmi" else "useful"]
            return await Informative(judge, task, threshold, most=most, language=self.language)(question, found)
        if self.filter in ("strinc", "lexical", "cxmi"):
            targets = await self.draft(self.model, question, found)
            leading = Leading(self.filter, self.model, threshold, most, self.language)
            return await leading(question, ask(ANSWER, question), found, targets) if targets else found
        return found

    async def _grades(self, question: Question, passages: Sequence[Passage]) -> Sequence[float]:
        return await relevance(self.judge or self.model, USEFUL, question.text, passages)

    async def _surer(self, question: Question, memory: Measured | None, found: Sequence[Passage]) -> Answer:
        """Of the answers from memory and from the passages the one of lower uncertainty."""
        if not found:
            return await self._from_memory(question, memory)
        answers = await gather(self._from_memory(question, memory), self._from_passages(question, found))
        names = ("memory", "passages")
        candidates = [
            Candidate(name, one.text, float("inf") if one.uncertainty is None else one.uncertainty, one.rationale, one.evidence)
            for name, one in zip(names, answers, strict=True)
        ]
        best = least_uncertain(candidates)
        return Answer(best.text, best.rationale, best.evidence, best.score)

    async def _from_memory(self, question: Question, memory: Measured | None) -> Answer:
        """With the signal that the other answer is measured with, which may be another than the gate's."""
        if memory is None or self._signal != self._reading_signal.name:
            return await self.read(self.model, question)
        return await self.answer_from(self.model, self.reading(question), memory)

    # --- settings ------------------------------------------------------------------------------------------------------

    @property
    def _signal(self) -> SignalName | None:
        """The gate's signal."""
        return None if self.gate == "never" or self.gate == "always" else self.gate

    @property
    def _gate_threshold(self) -> float | None:
        return threshold_of(self.model.thresholds, self._signal, self.gate_threshold, self.probe)

    @property
    def _reading_signal(self) -> Signal:
        return self.make_signal(self.signal)

    @property
    def _limits(self) -> tuple[float, int | None]:
        """Threshold and number of the sentences to keep: as set, else as the filter's own method has them."""
        threshold, most = LIMITS.get(self.filter, (0.0, None))
        if self.filter_threshold is not None:
            threshold = self.filter_threshold
        return threshold, most if self.keep is None else self.keep or None
