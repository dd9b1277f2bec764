"""IRCoT (Trivedi et al. 2022): retrieval and chain of thought in turns, each sentence being the next query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnothi import events
from gnothi.methods.steps.chain import conclude
from gnothi.methods.steps.parsing import as_choice, concludes, sentence
from gnothi.methods.steps.prompts import REASON, ask, require_text
from gnothi.methods.steps.settings import CHAIN_STOPS, SENTENCE_STOPS, SHORT_STOPS, MethodSettings, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.kinds.perplexity import Perplexity
from gnothi.types import Answer, Passage, Question


@dataclass(frozen=True, slots=True)
class IRCoT(MethodSettings):
    """Retrieve with the question, then one sentence and one retrieval in turns; a reader answers from all passages."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(4, "K: passages per retrieval.", at_least=1)
    max_steps: int = setting(8, "Sentences of the chain.", at_least=1)
    max_passages: int = setting(15, "Passages collected over all steps.", at_least=1)
    reread: bool = setting(True, "Answer by a new chain over all passages; false: conclude the chain that collected them.")

    name: ClassVar[str] = "ircot"

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        return await self.going_on(question, await self._search(question.text, ()))

    async def going_on(self, question: Question, passages: tuple[Passage, ...]) -> Answer:
        """The answer after the turns that follow a first search, which found ``passages``."""
        chain: list[str] = []
        for _ in range(self.max_steps):
            prompt = ask(REASON, question, passages, " ".join(chain))
            next_sentence = sentence((await self.model.generate(prompt, self.decoding(SENTENCE_STOPS))).text)
            if not next_sentence or next_sentence in chain:
                break
            chain.append(next_sentence)
            events.emit(events.Drafted(next_sentence, None))
            if concludes(next_sentence):
                break
            passages = await self._search(next_sentence, passages)
        answer = await self._read(question, passages, () if self.reread else tuple(chain))
        return await self.asked_again(self.model, question, answer)

    async def _search(self, query: str, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """``passages`` and what the query finds beyond them, up to the limit."""
        if len(passages) >= self.max_passages:
            return passages
        found = [scored.passage for scored in await self.retriever.search(query, self.k)]
        known = {passage.id for passage in passages}
        return (*passages, *(passage for passage in found if passage.id not in known))[: self.max_passages]

    async def _read(self, question: Question, passages: tuple[Passage, ...], chain: tuple[str, ...]) -> Answer:
        so_far = " ".join(chain)
        if chain and (answer := self.extraction.concluded(so_far)):
            return Answer(as_choice(answer, question.choices), so_far, passages)
        prompt = ask(REASON, question, passages, so_far)
        measured = await Perplexity().measure(self.model, prompt, self.decoding(CHAIN_STOPS))
        conclusion = await conclude(self.model, prompt, measured.greedy, self.decoding(SHORT_STOPS), self.extraction)
        if self.reread:
            events.emit(events.Written(conclusion.rationale))
        return Answer(as_choice(conclusion.answer, question.choices), conclusion.rationale, passages, measured.score)
