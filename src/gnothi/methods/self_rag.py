"""Self-RAG (Asai et al. 2024, arXiv 2310.11511): a model trained to write reflection tokens, whose probabilities steer it.

[Retrieval] says whether to look something up; each passage is continued by itself, and [Relevant], [Fully supported] and
[Utility:5] say how good the continuation is. One segment is the paper's short form, several with a beam its long form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.errors import MissingCapability
from gnothi.fields import setting
from gnothi.filtering.evaluator import relevance
from gnothi.methods.steps.parsing import as_choice, yes_or_no
from gnothi.methods.steps.prompts import USEFUL, ask, require_text
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.requirements import require_task, speaks
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.self_rag_tokens import (
    CONTINUE,
    IRRELEVANT,
    NO_RETRIEVAL,
    RELEVANT,
    RETRIEVAL,
    STOPS,
    SUPPORTS,
    TOKENS,
    UTILITIES,
    paragraph,
    share,
    support,
    utility,
    without_tokens,
)
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.kinds.perplexity import mean_probability
from gnothi.signals.kinds.self_report import AFFIRMATIVE, KNOW, NEGATIVE, probability_of_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Capabilities, Passage, Question, Task
from gnothi.yes_or_no import asks_yes_or_no

SELF_RAG = Task("self_rag", answer_label="")
_THRESHOLD = 0.2


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as it grows: as the model wrote it, with its tokens; and segment by segment, as it is read and as it scores.

    ``grounding`` is what the critiques of the passage that is being read add to a score, None where nothing is being read."""

    raw: str = ""
    segments: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    evidence: tuple[Passage, ...] = ()
    grounding: float | None = None
    finished: bool = False

    @property
    def text(self) -> str:
        return " ".join(filter(None, self.segments))

    @property
    def score(self) -> float:
        """The mean of the segments' scores: a longer draft is no better for being longer."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True, slots=True)
class SelfRAG(ReaderSettings):
    """Follows the reflection tokens of a model trained to write them: when to retrieve, and which continuation to trust."""

    model: LanguageModel
    retriever: Retriever
    critic: Literal["auto", "tokens", "judgements"] = setting(
        "auto",
        "Reflection tokens as in the paper; or, for models with a format of their own, P(Yes) of 'know' and 'useful' in the "
        "place of [Retrieval] and [Relevant] (auto: by the model).",
    )
    retrieve: Literal["adaptive", "always", "never"] = setting("adaptive", "When to retrieve.")
    threshold: float | None = setting(
        None,
        "Retrieve when [Retrieval] is likelier than this (none: 0.2; for judgements as calibrated on the model).",
        at_least=0.0,
        at_most=1.0,
    )
    k: int = setting(5, "Passages to retrieve, each continued by itself.", at_least=1)
    relevance: float = setting(1.0, "Weight of [Relevant] in a continuation's score.", at_least=0.0)
    support: float = setting(1.0, "Weight of [Fully supported] and, half, [Partially supported].", at_least=0.0)
    utility: float = setting(0.5, "Weight of [Utility:1] to [Utility:5].", at_least=0.0)
    segments: int = setting(1, "Segments an answer may have: 1 for short answers, 7 in the paper for long ones.", at_least=1)
    beam: int = setting(2, "Drafts to keep after each segment.", at_least=1)

    name: ClassVar[str] = "self_rag"
    usual_tokens: ClassVar[int] = 10_000

    def check_settings(self) -> None:
        if self.critic == "tokens":
            require_task(self.name, self.model, SELF_RAG, "Use <--set critic=judgements> (or auto), or another model.")
        added = self.model.profile.added_tokens
        if self._speaks_tokens and added is not None and RETRIEVAL not in added:
            raise self._without_tokens()

    @property
    def needs(self) -> Capabilities:
        return Capabilities(logprobs=True, scoring=True) | self.answering_needs

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        return await (self._by_tokens if self._speaks_tokens else self._by_judgements)(question)

    @property
    def _speaks_tokens(self) -> bool:
        return self.critic == "tokens" or (self.critic == "auto" and speaks(self.model, SELF_RAG))

    def _without_tokens(self) -> MissingCapability:
        return MissingCapability(
            self.name,
            self.model,
            [f"the reflection tokens ({', '.join(TOKENS[:2])} ...) in its vocabulary"],
            "Use a model trained to write them, such as selfrag/selfrag_llama2_7b with <--set model.renderer=instruction>, "
            "or <--set critic=judgements>.",
        )

    # --- reflection tokens ---------------------------------------------------------------------------------------------

    async def _by_tokens(self, question: Question) -> Answer:
        drafts = [Draft()]
        for _ in range(self.segments):
            grown = await gather(*(self._extend(question, draft) for draft in drafts if not draft.finished))
            candidates = [*(draft for draft in drafts if draft.finished), *(draft for several in grown for draft in several)]
            answers = [self._answer(draft.text, question) for draft in candidates]
            ranked = [candidates[place] for place in _order(question, answers, [draft.score for draft in candidates])]
            drafts = ranked[: self.beam]
            events.emit(events.Ranked("answer", tuple((_label(draft), draft.text, draft.score) for draft in drafts)))
            if all(draft.finished for draft in drafts):
                break
        best = drafts[0]
        return Answer(self._answer(best.text, question), best.text, best.evidence, -best.score)

    async def _extend(self, question: Question, draft: Draft) -> list[Draft]:
        """The draft with one more segment: from what it reads already, from each passage newly found, or from memory."""
        *ways, going_on = await self._probabilities(question, draft.raw, (RETRIEVAL, NO_RETRIEVAL, CONTINUE))
        if self.retrieve == "adaptive" and draft.grounding is not None and going_on > max(ways):
            events.emit(events.Decided("evidence", "continue_token", share((going_on, *ways)), None, "keep"))
            return [await self._continue(question, draft, CONTINUE)]
        passages: Sequence[Passage] = ()
        if self._decide("retrieval_token", share(ways), _THRESHOLD if self.threshold is None else self.threshold):
            query = " ".join([question.text, *draft.segments[-1:]])
            passages = await search(self.retriever, query, self.k)
        if not passages:
            return [await self._continue(question, draft, NO_RETRIEVAL)]
        return await gather(*(self._continue(question, draft, paragraph(passage), passage) for passage in passages))

    async def _continue(self, question: Question, draft: Draft, opening: str, passage: Passage | None = None) -> Draft:
        """The next segment and its critique, whose likeliest tokens are written. One that goes on with the passage that is
        being read is as well grounded as the one before: the model was not trained to judge that again."""
        grounding = draft.grounding if opening == CONTINUE else None
        so_far = draft.raw + opening
        if passage is not None:
            relevant = share(await self._probabilities(question, so_far, (RELEVANT, IRRELEVANT)))
            so_far += RELEVANT if relevant >= 0.5 else IRRELEVANT
            grounding = self.relevance * relevant
        reply = await self.model.generate(ask(SELF_RAG, question, so_far=so_far), self.decoding(STOPS))
        segment = without_tokens(reply.text)
        so_far += segment
        if passage is not None and grounding is not None:
            supported = await self._probabilities(question, so_far, SUPPORTS)
            so_far += SUPPORTS[supported.index(max(supported))]
            grounding += self.support * support(supported)
        ways_on = await self._probabilities(question, so_far, (*UTILITIES, RETRIEVAL, NO_RETRIEVAL, CONTINUE))
        useful, going_on = ways_on[: len(UTILITIES)], ways_on[len(UTILITIES) :]
        score = mean_probability(reply) + (grounding or 0.0) + self.utility * utility(useful)
        return Draft(
            so_far,
            (*draft.segments, segment),
            (*draft.scores, score),
            draft.evidence if passage is None or passage in draft.evidence else (*draft.evidence, passage),
            grounding,
            finished=not segment or sum(useful) >= sum(going_on),
        )

    async def _probabilities(self, question: Question, so_far: str, tokens: Sequence[str]) -> list[float]:
        """Of each token to come next. Raises MissingCapability for a model that has no such tokens."""
        scores = await self.model.score(ask(SELF_RAG, question, so_far=so_far), tokens)
        if any(one.text == RETRIEVAL and len(one.logprobs) > 1 for one in scores):
            raise self._without_tokens()  # one that did not tell before
        return [math.exp(one.logprob) for one in scores]

    def _answer(self, text: str, question: Question) -> str:
        answer = self.extraction.concluded(text) or self.extraction.short(text, question.text)
        return as_choice(answer, question.choices)

    # --- judgements in words -------------------------------------------------------------------------------------------

    async def _by_judgements(self, question: Question) -> Answer:
        """The same course with what the model can be asked: one segment, no critique of support and utility."""
        passages: Sequence[Passage] = ()
        if await self._says_it_does_not_know(question):
            passages = await search(self.retriever, question.text, self.k)
        if not passages:
            return await self.read(self.model, question)
        grades = await relevance(self.model, USEFUL, question.text, passages)
        prompts = [self.reading(question, [passage]) for passage in passages]
        measured = await gather(
            *(self.make_signal(self.signal).measure(self.model, prompt, self.reply_decoding(prompt)) for prompt in prompts)
        )
        answers = await gather(
            *(self.answer_from(self.model, prompt, one) for prompt, one in zip(prompts, measured, strict=True))
        )
        scores = [mean_probability(one.greedy) + self.relevance * grade for one, grade in zip(measured, grades, strict=True)]
        order = _order(question, [answer.text for answer in answers], scores)
        ranked = tuple((passages[place].id, measured[place].greedy.text.strip(), scores[place]) for place in order)
        events.emit(events.Ranked("answer", ranked))
        return answers[order[0]]

    async def _says_it_does_not_know(self, question: Question) -> bool:
        yes, no = await self.model.score(ask(KNOW, question), (AFFIRMATIVE, NEGATIVE))
        usual = self.model.profile.thresholds.get("self_report", _THRESHOLD)
        doubt = 1.0 - probability_of_yes(yes.logprob, no.logprob)
        return self._decide("self_report", doubt, usual if self.threshold is None else self.threshold)

    def _decide(self, signal: str, score: float, threshold: float) -> bool:
        fired = self.retrieve == "always" or (self.retrieve == "adaptive" and score > threshold)
        limit = threshold if self.retrieve == "adaptive" else None
        events.emit(events.Decided("retrieve", signal, score, limit, "retrieve" if fired else "trust"))
        return fired


def _order(question: Question, answers: Sequence[str], scores: Sequence[float]) -> list[int]:
    """The places of answers, best first: by score, and those that say nothing last.

    Where answers come from a closed set (choices; yes and no), equal ones stand together, by the sum of their scores."""
    closed = bool(question.choices) or asks_yes_or_no(question.text)
    forms = [normalized(answer if question.choices else yes_or_no(answer)) for answer in answers]
    together: dict[str, float] = {}
    for form, score in zip(forms, scores, strict=True):
        together[form] = together.get(form, 0.0) + score

    def rank(place: int) -> tuple[bool, float, float]:
        return says_nothing(answers[place]), -together[forms[place]] if closed else 0.0, -scores[place]

    return sorted(range(len(answers)), key=rank)


def _label(draft: Draft) -> str:
    return ", ".join(passage.id for passage in draft.evidence) or "memory"
