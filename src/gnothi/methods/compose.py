"""Parts of the other methods, freely combined: when to retrieve, with which query, what to keep, how to answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, get_args

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.fields import resource, setting
from gnothi.filtering.evaluator import Strips, relevance
from gnothi.filtering.leading import Leading
from gnothi.filtering.learned import GateSource
from gnothi.filtering.least_uncertain import Candidate, LeastUncertain, least_uncertain
from gnothi.filtering.self_knowledge import Informative
from gnothi.filtering.utility import Best, DemonstrationSource, Useful
from gnothi.methods.flare import ASK_FOR, questions_about
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.methods.steps.parsing import sentence
from gnothi.methods.steps.prompts import ANSWER, TASKS, USEFUL, ask, require_text
from gnothi.methods.steps.queries import certain_words, keywords, query_from_draft, uncertain_claims
from gnothi.methods.steps.reader import SentenceSettings
from gnothi.methods.steps.reflection import query as expanded
from gnothi.methods.steps.reflection import reflect, subjects
from gnothi.methods.steps.requirements import require, require_task
from gnothi.methods.steps.searching import ranked_in_turns
from gnothi.methods.steps.settings import SHORT_STOPS, SelfKnowledge, needs_of
from gnothi.methods.steps.stages import Stages, decides_on_search
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.signals.base import Measured, Signal
from gnothi.signals.gate import Gate
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Generation, Passage, Question

Query = Literal["question", "keywords", "draft", "masked", "questions", "claims", "reflection"]
Filter = Literal["none", "uncertainty", "utility", "rerank", "relevance", "pmi", "log_odds", "strinc", "lexical", "cxmi"]

CERTAINTY: Mapping[Query, float] = {"draft": 0.9, "masked": 0.4, "questions": 0.4, "claims": 0.9}
"""The queries made of an answer from memory, and from which probability on their methods count a word as certain."""
ASKED_FOR: Collection[Query] = ("masked", "questions")
"""The queries that say nothing without log-probabilities."""
JUDGED: Collection[Filter] = ("utility", "relevance", "pmi", "log_odds")
SCORED: Collection[Filter] = ("relevance", "pmi", "log_odds", "cxmi")
LIMITS: Mapping[Filter, tuple[float, int | None]] = {
    "rerank": (0.0, 3),
    "relevance": (0.0, 5),
    "pmi": (0.0, None),
    "log_odds": (0.0, None),
    "strinc": (0.0, 1),
    "lexical": (0.0, 1),
    "cxmi": (0.0, 1),
}
"""The threshold of a filter (of sentences) and the number kept, as their methods have them; other filters have neither."""
SENTENCES: Collection[Filter] = tuple(name for name in LIMITS if name != "rerank")

_RETRIEVING = ("query", "k", "filter", "answer")
_USES: Mapping[str, Mapping[str, Collection[str]]] = {
    "learned": {"gate": ("learned",), "answer": ("learned",)},
    "certainty": {"query": tuple(CERTAINTY)},
    "judge": {"filter": JUDGED},
    "reference": {"filter": ("utility",)},
    "reranker": {"filter": ("rerank",)},
    "filter_threshold": {"filter": SENTENCES},
    "keep": {"filter": tuple(LIMITS)},
    "language": {"filter": SENTENCES},
}
"""Which choices of which parts read a setting."""


def refuse_unused(method: Any) -> None:
    """Raise InvalidSetting for the first setting of ``compose`` that differs from its default and can have no effect."""
    changed = {item.name: getattr(method, item.name) for item in fields(method) if getattr(method, item.name) != item.default}
    if method.gate == "never":
        for key in _RETRIEVING:
            if key in changed:
                raise InvalidSetting(
                    f"setting {key!r}: got {changed[key]}, which has no effect with gate=never, where nothing is retrieved. "
                    f"Choose another gate, or leave out {key}."
                )
    if method.gate in ("never", "always") and "gate_threshold" in changed:
        raise InvalidSetting(
            f"setting 'gate_threshold': got {changed['gate_threshold']}, but gate={method.gate} measures nothing. Leave it out."
        )
    for key, parts in _USES.items():
        if key in changed and not any(getattr(method, part) in users for part, users in parts.items()):
            got = changed[key] if isinstance(changed[key], str | int | float) else "one"
            parts_chosen = " and ".join(f"{part}={getattr(method, part)}" for part in parts)
            expected = " or ".join(f"{part}={' or '.join(users)}" for part, users in parts.items())
            raise InvalidSetting(f"setting {key!r}: got {got}, which has no effect with {parts_chosen}; expected {expected}.")


def require_learnt(method: Any) -> None:
    """Raise InvalidSetting for a part of ``compose`` that goes by training questions and has none."""
    for part in ("gate", "answer"):
        if getattr(method, part) == "learned" and method.learned is None:
            raise InvalidSetting(
                f"setting {part!r}: got learned and no learnt gate, expected a folder of one, made by `gnothi "
                "calibrate --learn`. Give it with <--set learned=FOLDER>."
            )


OtherGate = Literal["never", "always", "learned"]


@dataclass(frozen=True, slots=True)
class Compose(SentenceSettings):
    """Any gate with any query, filter and way of answering."""

    model: LanguageModel
    retriever: Retriever
    judge: LanguageModel | None = resource("Model that judges for the filter.")
    reranker: Reranker | None = resource("Cross-encoder for filter=rerank.")
    graph: KnowledgeGraph | None = resource("What tells the question's entities for query=reflection.")
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
    query: Query = setting(
        "question",
        "Search for the question; its content words; of an answer from memory the certain words (SeaKR), all but the "
        "improbable ones (FLARE), or questions that these answer (FLARE); the question and the uncertain claims of that answer "
        "(SlimPLM); or the question and what the model knows about its entities (IEKR).",
    )
    certainty: float | None = setting(
        None,
        "Queries of an answer from memory: probability from which a word, or a claim, is certain (none: 0.9 for draft and "
        "claims, 0.4 for masked and questions).",
        at_least=0.0,
        at_most=1.0,
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
    answer: Literal["read", "surer", "learned"] = setting(
        "read",
        "Read what was kept; or of that answer and the one from memory take the surer one (SeaKR), or the one that by learned "
        "is likelier right, or neither (cascade).",
    )

    name: ClassVar[str] = "compose"
    asks_self_knowledge: ClassVar[SelfKnowledge] = SelfKnowledge("filter", "pmi", "filter=relevance")
    gating: ClassVar[GateSpec] = GateSpec("gate", "gate_threshold")

    def check_settings(self) -> None:
        refuse_unused(self)
        require_learnt(self)
        if self._named is not None:
            self.gating.require(self.gate, self._gate_threshold)
        if self.query == "claims" and self.reason is False:
            raise InvalidSetting("setting 'query': got claims, but a short answer makes none; expected reason=true with it.")
        if self.query == "questions":
            require_task(self.name, self.model, ASK_FOR, "Use <--set query=masked>, or another model.")
        require(self.name, "judge", self.judge, Capabilities(scoring=self.filter in SCORED), ", or filter=utility")

    def check_resources(self) -> None:
        if self.gate == "learned" and self.learned is not None and not decides_on_search(self.learned):
            raise InvalidSetting(
                "setting 'gate': got learned, but that gate decides nothing before a search: it was made for searches that "
                "cost nothing. Make one with `gnothi calibrate --learn RUN --search-cost 0.02`, or use <--set gate=always>."
            )

    @property
    def searches_draft(self) -> bool:
        return self.query in CERTAINTY

    @property
    def needs(self) -> Capabilities:
        judged_elsewhere = self.judge is not None and self.filter in JUDGED
        compares = self.filter == "uncertainty" or self.answer == "surer"
        return (
            needs_of(self._named)
            | self.answering_needs
            | needs_of("perplexity" if compares and self.signal is None else self.signal)
            | Capabilities(logprobs=self.query in ASKED_FOR, scoring=self.filter in SCORED and not judged_elsewhere)
        )

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if self.gate == "never":
            return await self.read(self.model, question)
        prompt, memory = self.reading(question), None
        stages = Stages(self.learned, self, self.model, question, self._gate_threshold, searching=self.gate == "learned")
        if self.gate == "learned":
            drafted = await stages.draft()
            if not stages.going_on:
                return stages.answer(drafted) if self.answer == "learned" else drafted
            memory = stages.measured
        elif self._named is not None:
            drafts = self.query in CERTAINTY or (self.answer != "read" and self._reuses)
            gate = Gate(self.make_signal(self._named), self._gate_threshold, draft=drafts)
            verdict = await gate(self.model, prompt, self.reply_decoding(prompt))
            memory = verdict.measured
            if not verdict.fired:
                return await self.answer_from(self.model, prompt, memory)
        ranked = await ranked_in_turns(self.retriever, await self._queries(question, memory), self.k)
        if self.answer == "learned":
            stages.measured = memory if self._reuses else None
            return await stages.better(ranked, self._from_passages)
        passages = tuple(one.passage for one in ranked)
        if self.answer == "read":
            return await self._from_passages(question, passages)
        return await self._surer(question, memory, passages)

    # --- parts ---------------------------------------------------------------------------------------------------------

    async def _queries(self, question: Question, memory: Measured | None) -> list[str]:
        """At least one."""
        if self.query == "question":
            return [question.text]
        if self.query == "keywords":
            return [keywords(question.text)]
        if self.query == "reflection":
            internal = await reflect(self.model, await subjects(self.graph, question), self.max_tokens)
            return [" ".join(expanded(question, internal).split())]
        draft = memory.greedy if memory else await self._draft(question)
        certainty = CERTAINTY[self.query] if self.certainty is None else self.certainty
        if self.query == "draft":
            return [query_from_draft(draft, question.text, certainty=certainty)]
        if self.query == "masked":
            return [certain_words(draft, certainty) or question.text]
        if self.query == "claims":
            return [question.text, *uncertain_claims(draft, certainty)]
        drafted = sentence(draft.text)
        passage, decoding = f"{question.text} {drafted}", self.decoding(SHORT_STOPS)
        return await questions_about(self.model, passage, draft, certainty, decoding) or [drafted or question.text]

    async def _draft(self, question: Question) -> Generation:
        prompt = self.reading(question)
        return await self.model.generate(prompt, self.reply_decoding(prompt))

    async def _from_passages(self, question: Question, passages: Sequence[Passage]) -> Answer:
        if self.filter == "uncertainty" and passages:
            choose, prompt = LeastUncertain(self._reading_signal), self.reading(question)
            best = await choose(self.model, prompt, passages, self.reply_decoding(prompt))
            return await self.answer_from(self.model, self.reading(question, (best.passage,)), best.measured)
        return await self.read(self.model, question, await self._filtered(question, passages))

    async def _filtered(self, question: Question, passages: Sequence[Passage]) -> Sequence[Passage]:
        judge = self.judge or self.model
        threshold, most = self._limits
        if self.filter == "utility":
            return await Useful(judge, USEFUL, self.reference)(question.text, passages)
        if self.filter == "rerank":
            return await Best(self.reranker, most)(question.text, passages)
        if self.filter == "relevance":
            return await Strips(self._grades, "useful", threshold, most, self.language)(question, passages)
        if self.filter in ("pmi", "log_odds"):
            task = TASKS["know" if self.filter == "pmi" else "useful"]
            return await Informative(judge, task, threshold, most=most, language=self.language)(question, passages)
        if self.filter in ("strinc", "lexical", "cxmi"):
            targets = await self.draft(self.model, question, passages)
            leading = Leading(self.filter, self.model, threshold, most, self.language)
            return await leading(question, ask(ANSWER, question), passages, targets) if targets else passages
        return self.selected(question, passages) if self.query == "question" else passages

    async def _grades(self, question: Question, passages: Sequence[Passage]) -> Sequence[float]:
        return await relevance(self.judge or self.model, USEFUL, question.text, passages)

    async def _surer(self, question: Question, memory: Measured | None, passages: Sequence[Passage]) -> Answer:
        """Of the answers from memory and from the passages the one of lower uncertainty."""
        if not passages:
            return await self._from_memory(question, memory)
        answers = await gather(self._from_memory(question, memory), self._from_passages(question, passages))
        best = least_uncertain([Candidate.of(*one) for one in zip(("memory", "passages"), answers, strict=True)])
        return Answer(best.text, best.rationale, best.evidence, best.score)

    async def _from_memory(self, question: Question, memory: Measured | None) -> Answer:
        """With the signal that the other answer is measured with, which may be another than the gate's."""
        if memory is None or not self._reuses:
            return await self.read(self.model, question)
        return await self.answer_from(self.model, self.reading(question), memory)

    # --- settings ------------------------------------------------------------------------------------------------------

    @property
    def _named(self) -> SignalName | None:
        """The gate's signal; None where none is measured."""
        return None if self.gate in get_args(OtherGate) else self.gate

    @property
    def _gate_threshold(self) -> float | None:
        return threshold_of(self.model.profile.thresholds, self._named, self.gate_threshold, self.probe)

    @property
    def _reuses(self) -> bool:
        """Whether what the gate measured of the answer from memory is what answers are compared by."""
        return self.gate == "learned" or self._named == self._reading_signal.name

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
