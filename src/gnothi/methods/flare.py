"""FLARE: forward-looking active retrieval (Jiang et al. 2023, arXiv 2305.06983), in its form FLARE-direct.

The next sentence is drafted from memory. One that holds an improbable token is looked up and written anew from what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.concurrency import gather
from gnothi.fields import resource, setting
from gnothi.methods.steps.chain import answer_to
from gnothi.methods.steps.parsing import concludes, cut, first_sentence, read_reply, sentence, until_it_repeats
from gnothi.methods.steps.prompts import REASON, ask
from gnothi.methods.steps.queries import adds_nothing, certain_words, uncertain_spans
from gnothi.methods.steps.requirements import require, require_task
from gnothi.methods.steps.searching import in_turns
from gnothi.methods.steps.settings import CHAIN_STOPS, SENTENCE_STOPS, SHORT_STOPS, MethodSettings
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.base import Measured
from gnothi.signals.gate import Gate, decisive
from gnothi.signals.kinds.least_likely import LeastLikely, least_likely
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Capabilities, Decoding, Demonstration, Generation, Passage, Prompt, Question, Task

ASK_FOR = Task(
    name="ask_for",
    instruction=(
        "You see a question, its answer as far as it is written and, after that, a part of the last sentence between quotation "
        "marks. Write the question to which that part is the answer. Name what it is about, so that it can be understood by "
        "itself, and write nothing else."
    ),
    demonstrations=(
        Demonstration(
            "In which country was the composer of the opera Carmen born? The opera Carmen was composed by Georges Bizet. "
            'He was born in France. "France"',
            "In which country was Georges Bizet born?",
        ),
        Demonstration(
            'Is the tram of Dunmere older than its lighthouse? The Dunmere Salt Tram opened in 1902. "1902"',
            "When did the Dunmere Salt Tram open?",
        ),
        Demonstration(
            "Which river flows through the capital of Hungary? The capital of Hungary is Budapest. It lies on the Danube. "
            '"Danube"',
            "On which river does Budapest lie?",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Flare(MethodSettings):
    """Drafts sentence by sentence from memory; looks up and rewrites a sentence in which a token was improbable."""

    model: LanguageModel
    retriever: Retriever
    reader: LanguageModel | None = resource("Model that writes the answer, perhaps one trained by gnothi train reader.")
    theta: float = setting(0.8, "θ: retrieve when a token of the draft is less probable than this.", at_least=0.0, at_most=1.0)
    beta: float = setting(
        0.4, "β: words less probable than this are left out of, or asked for in, the query.", at_least=0.0, at_most=1.0
    )
    query: Literal["masked", "questions"] = setting(
        "masked", "Search for the draft without its improbable words, or for questions that these would answer."
    )
    k: int = setting(2, "Passages to write a sentence from.", at_least=1)
    search_first: bool = setting(
        False, "Begin with a search for the question; drafts then see what was found last (as the authors ran it)."
    )
    follows: Literal["paper", "code"] = setting(
        "paper",
        "Where ours and the authors' code differ. code: a draft of improbable words alone is not searched for, a concluding "
        "one as any other; the text ends where the model ends it, whatever is said or repeated before.",
    )
    max_steps: int = setting(10, "Sentences of the answer.", at_least=1)
    max_length: int | None = setting(
        None, "Tokens of the whole text: it ends there, within a sentence if need be (none: no limit).", at_least=1
    )
    max_searches: int | None = setting(None, "Searches a question may take; further drafts stand (none: no limit).", at_least=1)

    name: ClassVar[str] = "flare"
    usual_tokens: ClassVar[int] = 6_000

    def check_settings(self) -> None:
        if self.query == "questions":
            require_task(self.name, self.model, ASK_FOR, "Use <--set query=masked>, or another model.")

    @property
    def needs(self) -> Capabilities:
        return Capabilities(logprobs=True) if self.reader is None else Capabilities()

    def check_resources(self) -> None:
        """Raise MissingCapability for a reader that does not tell how probable its words were."""
        require(self.name, "reader", self.reader, Capabilities(logprobs=True))

    async def __call__(self, question: Question) -> Answer:
        model = self.reader or self.model
        chain: list[str] = []
        doubt = 0.0
        by_id: dict[str, Passage] = {}
        passages: tuple[Passage, ...] = ()
        prompt = ask(REASON, question)
        searched, length = int(self.search_first), 0
        if self.search_first:
            passages = await in_turns(self.retriever, [question.text], self.k)
            by_id |= {passage.id: passage for passage in passages}
        gate = Gate(LeastLikely(), decisive(1.0 - self.theta), silent=(lambda _: False) if self._as_code else says_nothing)
        for _ in range(self.max_steps):
            prompt = ask(REASON, question, passages, " ".join(chain))
            measured, ends = await self._sentence(model, prompt)
            looks = gate.judge(measured).fired and (self.max_searches is None or searched < self.max_searches)
            queries = await self._queries(question, chain, measured.greedy) if looks else []
            searched += bool(queries)
            if hits := await in_turns(self.retriever, queries, self.k):
                passages = hits if self.search_first else ()
                by_id |= {passage.id: passage for passage in hits}
                prompt = ask(REASON, question, hits, " ".join(chain))
                measured, ends = await self._sentence(model, prompt)
                events.emit(events.Written(sentence(measured.greedy.text)))
            reply = self._within(measured.greedy, length)
            length += len(reply.tokens)
            drafted = reply.text.strip() if self._as_code else sentence(reply.text)
            line = drafted if self._as_code else until_it_repeats(drafted)
            if not line or (not self._as_code and adds_nothing(line, chain) and not concludes(line)):
                break
            chain.append(line)
            doubt = max(doubt, measured.uncertainty)
            full = self.max_length is not None and length >= self.max_length
            if full or (ends if self._as_code else concludes(line) or line != drafted):
                break
        finished = Prompt(REASON, question.text, prompt.passages, question.choices, " ".join(chain))
        evidence, uncertainty = tuple(by_id.values()), doubt if chain else None
        answer = await answer_to(model, finished, self.decoding(SHORT_STOPS), evidence, uncertainty, self.extraction)
        return await self.reread(model, question, answer)

    @property
    def _as_code(self) -> bool:
        return self.follows == "code"

    async def _sentence(self, model: LanguageModel, prompt: Prompt) -> tuple[Measured, bool]:
        """The next sentence with its doubt, and whether the model ends with it. The code cuts it out of what is written."""
        reply = await model.generate(prompt, self.decoding(CHAIN_STOPS if self._as_code else SENTENCE_STOPS))
        first = first_sentence(reply) if self._as_code else reply
        return Measured(first, least_likely(first)), first.text == reply.text and reply.finish != "length"

    def _within(self, reply: Generation, length: int) -> Generation:
        """What of it still has a place in a text that has so many tokens."""
        if self.max_length is None or length + len(reply.tokens) <= self.max_length:
            return reply
        return cut(reply, sum(len(token.text) for token in reply.tokens[: self.max_length - length]))

    async def _queries(self, question: Question, chain: Sequence[str], draft: Generation) -> list[str]:
        """The draft without its improbable words; or a question for each run of them, and the draft where there are none.

        The question itself where nothing is left of the draft, or nothing was said; before what is left of the answer that a
        conclusion names, which does not tell what it is about. What goes round in circles is searched for once."""
        if self._as_code and (self.query == "masked" or not draft.text.strip()):
            return [words] if (words := certain_words(draft, self.beta)) else []
        drafted = draft.text.strip() if self._as_code else until_it_repeats(sentence(draft.text))
        if self.query == "masked" or not drafted:
            words = until_it_repeats(certain_words(draft, self.beta))
            return [f"{question.text} {read_reply(words).conclusion}".strip() if concludes(drafted) else words or question.text]
        passage = " ".join([question.text, *chain, drafted])
        return await questions_about(self.model, passage, draft, self.beta, self.decoding(SHORT_STOPS)) or [drafted]


async def questions_about(model: LanguageModel, passage: str, draft: Generation, beta: float, decoding: Decoding) -> list[str]:
    """For each run of words of the draft less probable than ``beta`` a question that it answers; none where the model has none.

    ``passage`` is what was written so far, the draft at its end."""
    prompts = [Prompt(ASK_FOR, f'{passage} "{span}"') for span in uncertain_spans(draft, beta)]
    replies = await gather(*(model.generate(prompt, decoding) for prompt in prompts))
    return [text for reply in replies if (text := reply.text.strip())]
