"""SeaKR: self-aware knowledge retrieval (Yao et al. 2024, arXiv 2406.19215).

The model's uncertainty about its next sentence decides whether to retrieve (section 3.2), which passage to keep (3.3) and
which of two ways of answering to trust (3.4).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar, Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.fields import setting
from gnothi.filtering.least_uncertain import Candidate, LeastUncertain, least_uncertain
from gnothi.methods.steps.chain import Conclusion, conclude
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.methods.steps.parsing import as_choice, concludes, concluding, sentence, split_sentences
from gnothi.methods.steps.prompts import ANSWER, REASON, ask
from gnothi.methods.steps.queries import query_from_draft
from gnothi.methods.steps.reader import Reason, asks_for_chain, reasons_about
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import CHAIN_STOPS, SENTENCE_STOPS, SHORT_STOPS, SignalSettings, needs_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.base import Measured, Signal
from gnothi.signals.drawing import Comparison
from gnothi.signals.gate import Gate
from gnothi.signals.registry import SignalName
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Capabilities, Decoding, Generation, Passage, Prompt, Question

CANDIDATES, CANDIDATES_SIMPLE = 3, 10
"""Passages to choose from (section 4.1.3)."""
_FIRST_STOPS = (". ", "\n\n", "\nQuestion:", "\nContext")
_NAMED = 20
"""The code's stops of a first sentence, and its tokens for an answer that has to be asked for, in the simple form."""


@dataclass(frozen=True, slots=True)
class Step:
    """A sentence of the rationale with the uncertainty of its context."""

    text: str
    uncertainty: float


@dataclass(frozen=True, slots=True)
class Chain:
    """A way to an answer: what continues ``prompt`` up to ``stops``, unless the prompt holds it already (``complete``).
    ``uncertainty``: U, where it is not that of the continuation."""

    strategy: str
    prompt: Prompt
    stops: tuple[str, ...]
    knowledge: tuple[Passage, ...]
    uncertainty: float | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True)
class SeaKR(SignalSettings):
    """Retrieves when the model's hidden states disagree, keeps the passage and the answer under which they agree most."""

    model: LanguageModel
    retriever: Retriever
    form: Literal["multi_hop", "simple"] = setting(
        "multi_hop", "Sentence by sentence, or one answer with at most one retrieval."
    )
    signal: SignalName = setting("gram", "U: what measures uncertainty.")
    threshold: float | None = setting(
        None,
        "δ: retrieve above it (none: the probe's, the one calibrated on the model, or the signal's usual one, -6 for gram).",
    )
    always_retrieve: bool = setting(False, "Ablation: retrieve at every step, whatever the uncertainty.")
    query: Literal["auto", "draft", "question"] = setting(
        "auto",
        "Search for the certain words of the draft, or for the question; auto: the draft's, in the simple form the question.",
    )
    certainty: float = setting(0.9, "Probability from which a drafted word belongs in the query.", at_least=0.0, at_most=1.0)
    candidates: int | None = setting(
        None, "N: passages to choose from at each retrieval (none: 3, in the simple form 10).", at_least=1
    )
    rerank: bool = setting(True, "Choose the passage of lowest uncertainty; false (ablation): the retriever's first.")
    strategy: Literal["auto", "both", "rationales", "knowledge"] = setting(
        "auto", "Answer from rationales, passages, or the surer one (both); auto: both, in the simple form from what was found."
    )
    rationale_score: Literal["chain", "steps"] = setting(
        "chain", "Uncertainty of the rationale strategy: that of its chain, or the mean over its steps (table 12)."
    )
    follows: Literal["paper", "code"] = setting(
        "paper",
        "Where paper and authors' code differ. code: drafts and re-ranking read the passages kept so far; of the N found those "
        "not kept are tried; both strategies always answer; a conclusion is asked for without the chain that lacks it.",
    )
    max_steps: int = setting(7, "Sentences of the rationale.", at_least=1)
    max_passages: int = setting(5, "Passages kept over all steps.", at_least=1)
    reason: Reason = setting("auto", "Simple form: reason step by step; false: a short answer at once; auto: by the question.")

    name: ClassVar[str] = "seakr"
    usual_tokens: ClassVar[int] = 25_000
    gating: ClassVar[GateSpec] = GateSpec("signal", "threshold", open="always_retrieve")

    def check_settings(self) -> None:
        if not self.always_retrieve:
            self.gating.require(self.signal, self._threshold)

    @property
    def needs(self) -> Capabilities:
        return needs_of(self.signal)

    async def __call__(self, question: Question) -> Answer:
        candidates = await (self._simple(question) if self.form == "simple" else self._multi_hop(question))
        best = least_uncertain(candidates, (lambda answer: "unknown" in answer.lower()) if self._as_code else says_nothing)
        answer = Answer(as_choice(best.text, question.choices), best.rationale, best.evidence, best.score)
        return await self.reread(self.model, question, answer)

    # --- several steps -------------------------------------------------------------------------------------------------

    async def _multi_hop(self, question: Question) -> list[Candidate]:
        rationale, knowledge = await self._iterate(question)
        answers = bool(knowledge) or self._as_code
        # The first wins a tie: knowledge, as in the authors' code.
        chains = [self._over_knowledge(question, knowledge)] if self._strategy != "rationales" and answers else []
        if self._strategy != "knowledge" or not answers:
            chains.append(self._over_rationales(question, rationale, knowledge))
        return await gather(*map(self._candidate, chains, await self._measured(chains)))

    async def _iterate(self, question: Question) -> tuple[list[Step], tuple[Passage, ...]]:
        """The buffers R and K: reason sentence by sentence, retrieving where the model is uncertain (section 3.2)."""
        rationale: list[Step] = []
        knowledge: tuple[Passage, ...] = ()
        queries: set[str] = set()
        for _ in range(self.max_steps):
            context = ask(REASON, question, knowledge if self._as_code else (), _joined(rationale))
            decoding = self.decoding(_FIRST_STOPS if self._as_code and not rationale else SENTENCE_STOPS)
            measured = await self._gate.measure(self.model, context, decoding)
            draft, retrieved = sentence(measured.greedy.text), False
            if (rationale or self._as_code) and self._ends(measured.greedy.text):  # it adds nothing to be known
                events.emit(events.Drafted(draft, measured.score))
                rationale.append(Step(draft, measured.uncertainty))
                break
            verdict = self._gate.judge(measured)
            if verdict.fired:
                query = self._query(measured.greedy, question, rationale)
                asked_before = query in queries and not self._asks_question
                passages = () if asked_before else await self._search(query, knowledge)
                queries.add(query)
                if retrieved := bool(passages):
                    best = await self._reranker(self.model, context, passages, decoding)
                    knowledge, measured = (*knowledge, best.passage), best.measured
            step = Step(sentence(measured.greedy.text), measured.uncertainty)
            out_of_evidence = verdict.fired and not retrieved
            if self._as_code and out_of_evidence:
                break  # a sentence that nothing was found for does not stand
            if not self._as_code and (not step.text or any(step.text == earlier.text for earlier in rationale)):
                break  # nothing said, or nothing new
            rationale.append(step)
            if self._ends(measured.greedy.text) or out_of_evidence or len(knowledge) >= self.max_passages:
                break
        return rationale, knowledge

    def _over_rationales(self, question: Question, rationale: list[Step], knowledge: tuple[Passage, ...]) -> Chain:
        """A new chain of thought over the sentences of the rationale but its conclusion, read as passages (section 3.4)."""
        premises = (
            _without_conclusion(rationale) if self._as_code else [one.text for one in rationale if not concludes(one.text)]
        )
        steps = fmean(step.uncertainty for step in rationale) if rationale else 0.0
        if rationale and not premises and not self._as_code:  # a conclusion without premises is the chain
            so_far = ask(REASON, question, so_far=_joined(rationale))
            return Chain("rationales", so_far, SHORT_STOPS, knowledge, steps, complete=True)
        passages = tuple(Passage(f"r{n}", text) for n, text in enumerate(premises, start=1))
        scored = steps if self.rationale_score == "steps" and rationale else None
        stops = SHORT_STOPS if self._as_code else CHAIN_STOPS
        return Chain("rationales", ask(REASON, question, passages), stops, knowledge, scored)

    def _over_knowledge(self, question: Question, knowledge: tuple[Passage, ...]) -> Chain:
        """A new chain of thought over all kept passages (section 3.4, appendix D.3)."""
        return Chain("knowledge", ask(REASON, question, knowledge), CHAIN_STOPS, knowledge)

    async def _measured(self, chains: list[Chain]) -> list[Measured]:
        """Each chain with its U; together where these alone are compared."""
        requests = [(chain.prompt, self.decoding(chain.stops)) for chain in chains]
        if all(chain.uncertainty is None for chain in chains):
            return await Comparison(self._signal, _never if self._as_code else says_nothing)(self.model, requests)

        async def measure(chain: Chain, prompt: Prompt, decoding: Decoding) -> Measured:
            if chain.complete:
                return Measured(Generation(""), math.inf)
            return await self._signal.measure(self.model, prompt, decoding)

        return await gather(*(measure(chain, *pair) for chain, pair in zip(chains, requests, strict=True)))

    async def _candidate(self, chain: Chain, measured: Measured) -> Candidate:
        """What a chain of thought comes to, and its U.

        The code asks for a conclusion without the chain that lacks it; over passages its own U counts."""
        short, prompt, uncertainty = self.decoding(SHORT_STOPS), chain.prompt, measured.uncertainty
        reply = " ".join(measured.greedy.text.split())
        if chain.complete or not self._as_code or self.extraction.concluded(reply):
            concluded = await conclude(self.model, prompt, measured.greedy, short, self.extraction)
        else:
            opened = replace(prompt, answer_so_far=concluding())
            if chain.strategy == "knowledge":
                forced = await self._signal.measure(self.model, opened, short)
                named, uncertainty = forced.greedy, forced.uncertainty
            else:
                named = await self.model.generate(opened, short)
            concluded = Conclusion(
                self.extraction.short(named.text, prompt.question), f"{concluding(reply)} {named.text.strip()}".strip()
            )
        if chain.uncertainty is not None:
            uncertainty = chain.uncertainty
        return Candidate(chain.strategy, concluded.answer, uncertainty, concluded.rationale, chain.knowledge)

    # --- one step ------------------------------------------------------------------------------------------------------

    async def _simple(self, question: Question) -> list[Candidate]:
        """The answer from memory and, where that is uncertain, the one from the best single passage (section 4.1.3)."""
        reasons = reasons_about(self.reason, question, self.model)
        context = ask(REASON if reasons else ANSWER, question)
        decoding = self.decoding(CHAIN_STOPS if reasons and not self._as_code else SHORT_STOPS)
        verdict = await self._gate(self.model, context, decoding)
        passages: tuple[Passage, ...] = ()
        if verdict.fired:
            passages = await self._search(self._query(verdict.measured.greedy, question, []), ())
        if not passages:
            return [await self._simple_answer("rationales", context, verdict.measured)]
        best = await self._reranker(self.model, context, passages, decoding)
        candidates = await gather(
            self._simple_answer("rationales", context, verdict.measured),
            self._simple_answer("knowledge", replace(context, passages=(best.passage,)), best.measured),
        )
        return [one for one in candidates if self._strategy in ("both", one.strategy)]

    async def _simple_answer(self, strategy: str, prompt: Prompt, measured: Measured) -> Candidate:
        if asks_for_chain(prompt):
            short = self.decoding(SHORT_STOPS)
            short = replace(short, max_tokens=min(short.max_tokens, _NAMED)) if self._as_code else short
            conclusion = await conclude(self.model, prompt, measured.greedy, short, self.extraction)
        else:
            conclusion = Conclusion(self.extraction.short(measured.greedy.text, prompt.question), "")
        return Candidate(strategy, conclusion.answer, measured.uncertainty, conclusion.rationale, prompt.passages)

    # --- parts ---------------------------------------------------------------------------------------------------------

    @property
    def _signal(self) -> Signal:
        return self.make_signal(self.signal)

    @property
    def _gate(self) -> Gate:
        return Gate(self._signal, None if self.always_retrieve else self._threshold, silent=self._silent)

    @property
    def _threshold(self) -> float | None:
        return threshold_of(self.model.profile.thresholds, self.signal, self.threshold, self.probe)

    @property
    def _reranker(self) -> LeastUncertain:
        return LeastUncertain(self._signal, self._silent)

    @property
    def _as_code(self) -> bool:
        return self.follows == "code"

    @property
    def _silent(self) -> Callable[[str], bool]:
        """Which reply says nothing: its uncertainty does not count. In the code a blank sentence, and no answer at all."""
        if not self._as_code:
            return says_nothing
        return _blank if self.form == "multi_hop" else _never

    def _ends(self, text: str) -> bool:
        """Whether a sentence ends the rationale; in the code, one whose conclusion the pattern finds as it was written."""
        return bool(self.extraction.concluded(text)) if self._as_code else concludes(sentence(text))

    @property
    def _strategy(self) -> str:
        simple = "knowledge" if self.form == "simple" else "both"
        return simple if self.strategy == "auto" else self.strategy

    @property
    def _asks_question(self) -> bool:
        return self.query == "question" or (self.query == "auto" and self.form == "simple")

    def _query(self, draft: Generation, question: Question, rationale: list[Step]) -> str:
        if self._asks_question:
            return question.text
        previous = rationale[-1].text if rationale else ""
        return query_from_draft(draft, question.text, previous, self.certainty)

    async def _search(self, query: str, knowledge: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """The best passages that are not kept already: N of them to choose from, or just one without re-ranking. As the code
        has it, those of the best N that are not kept."""
        many = self.candidates or (CANDIDATES_SIMPLE if self.form == "simple" else CANDIDATES)
        known = {passage.id for passage in knowledge}
        passages = await search(self.retriever, query, many, () if self._as_code else known)
        passages = tuple(one for one in passages if one.id not in known)
        return passages if self.rerank else passages[:1]


_CONCLUSION = re.compile("the answer is|is the answer", re.IGNORECASE)


def _without_conclusion(rationale: list[Step]) -> list[str]:
    """The sentences, of the last one without what concludes (the code)."""
    texts = [step.text for step in rationale]
    last = [one for one in split_sentences(texts.pop()) if one and not _CONCLUSION.search(one)] if texts else []
    return [*texts, " ".join(last)] if last else texts


def _blank(text: str) -> bool:
    return not text.strip()


def _never(text: str) -> bool:  # noqa: ARG001
    return False


def _joined(rationale: list[Step]) -> str:
    return " ".join(step.text for step in rationale)
