"""IRCoT (Trivedi et al. 2022): retrieval and chain of thought in turns, each sentence being the next query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.fields import setting
from gnothi.methods.steps.chain import conclude
from gnothi.methods.steps.extraction import IRCOT
from gnothi.methods.steps.parsing import as_choice, concludes, sentence, split_sentences
from gnothi.methods.steps.prompts import REASON, ask, require_text
from gnothi.methods.steps.settings import CHAIN_STOPS, SENTENCE_STOPS, SHORT_STOPS, MethodSettings
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.types import Answer, Passage, Question

# The code's: what draws a conclusion states no fact to search with, and these words are left out of queries.
_REASONS = re.compile(r"(?i:thus[ ,]|so[ ,]|that is,|therefore|hence)|.*\d [+-] \d(?:[\d,]*\.?\d)? = \d")
_ASKING = frozenset("who what when where why which how does is".split())


@dataclass(frozen=True, slots=True)
class IRCoT(MethodSettings):
    """Retrieve with the question, then one sentence and one retrieval in turns; a reader answers from all passages."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(4, "K: passages per retrieval.", at_least=1)
    max_steps: int = setting(8, "Sentences of the chain.", at_least=1)
    max_passages: int = setting(15, "Passages collected over all steps.", at_least=1)
    follows: Literal["paper", "code"] = setting(
        "paper",
        "Where paper and authors' code differ. code: queries are the last sentence that states a fact, without words such as "
        "who and is; a repeated sentence ends nothing; the same text is one passage; the last sentence is not searched for.",
    )

    name: ClassVar[str] = "ircot"
    usual_tokens: ClassVar[int] = 8_000

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        return await self.going_on(question, await self.first(question))

    async def first(self, question: Question) -> tuple[Passage, ...]:
        """What the search for the question finds."""
        return await self._search(self._query(question, ()), ())

    async def going_on(self, question: Question, passages: tuple[Passage, ...]) -> Answer:
        """The answer after the turns that follow a first search, which found ``passages``."""
        chain: list[str] = []
        for _ in range(self.max_steps):
            next_sentence = await self._next(question, passages, chain)
            if not next_sentence or (next_sentence in chain and not self._as_code):
                break
            chain.append(next_sentence)
            events.emit(events.Drafted(next_sentence, None))
            if IRCOT.match(next_sentence) or len(chain) == self.max_steps if self._as_code else concludes(next_sentence):
                break
            passages = await self._search(self._query(question, chain), passages)
        return await self.reread(self.model, question, await self._answer(question, passages))

    @property
    def _as_code(self) -> bool:
        return self.follows == "code"

    async def _next(self, question: Question, passages: tuple[Passage, ...], chain: Sequence[str]) -> str:
        """The next sentence, blank where there is none. The code has a line written and takes its first."""
        prompt = ask(REASON, question, passages, " ".join(chain))
        reply = await self.model.generate(prompt, self.decoding(SHORT_STOPS if self._as_code else SENTENCE_STOPS))
        return split_sentences(reply.text)[0] if self._as_code else sentence(reply.text)

    def _query(self, question: Question, chain: Sequence[str]) -> str:
        if not self._as_code:
            return chain[-1] if chain else question.text
        facts = [sentence for sentence in chain if not _REASONS.match(sentence)]
        return " ".join(word for word in (facts or [question.text])[-1].split() if word.lower() not in _ASKING)

    async def _search(self, query: str, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """``passages`` and what the query finds beyond them, up to the limit."""
        if len(passages) >= self.max_passages or not query:
            return passages
        known = {self._same(passage): passage for passage in passages}
        for hit in await self.retriever.search(query, self.k):
            known.setdefault(self._same(hit.passage), hit.passage)
        return tuple(known.values())[: self.max_passages]

    def _same(self, passage: Passage) -> object:
        """What makes two passages one."""
        return (passage.title, passage.text) if self._as_code else passage.id

    async def _answer(self, question: Question, passages: tuple[Passage, ...]) -> Answer:
        """By a new chain over all passages."""
        prompt = ask(REASON, question, passages)
        measured = await Perplexity().measure(self.model, prompt, self.decoding(CHAIN_STOPS))
        conclusion = await conclude(self.model, prompt, measured.greedy, self.decoding(SHORT_STOPS), self.extraction)
        events.emit(events.Written(conclusion.rationale))
        return Answer(as_choice(conclusion.answer, question.choices), conclusion.rationale, passages, measured.score)
