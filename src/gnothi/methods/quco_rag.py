"""QuCo-RAG (Min et al. 2025, arXiv 2512.19134): what a corpus says of names decides when to retrieve, not the model.

Names of the question that are rare there are looked up before anything is written. A sentence that brings two names together
which never meet there is looked up and written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gnothi import events
from gnothi.concurrency import gather
from gnothi.fields import setting
from gnothi.methods.steps.chain import answer_to
from gnothi.methods.steps.parsing import concludes, split_sentences
from gnothi.methods.steps.prompts import REASON, ask
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import CHAIN_STOPS, SHORT_STOPS, MethodSettings
from gnothi.protocols import Count, LanguageModel, Retriever
from gnothi.retrieval.results import counter
from gnothi.signals.kinds.cooccurrence import Cooccurrence
from gnothi.signals.kinds.entity_frequency import EntityFrequency, mean_count
from gnothi.signals.names import pairs, runs_of_names
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Passage, Question


@dataclass(frozen=True, slots=True)
class QuCoRag(MethodSettings):
    """Looks up a question whose names are rare in the index, and rewrites a sentence whose names never meet there."""

    model: LanguageModel
    retriever: Retriever
    rare: float = setting(
        1000.0,
        "Search for the question where a name of it stands in fewer passages than this, as a mean (published for a corpus of 4 "
        "trillion tokens: on a small index, nearly always).",
        at_least=0.0,
    )
    meeting: int = setting(1, "Search where two names of a sentence meet in fewer passages than this.", at_least=0)
    k: int = setting(3, "Passages per query.", at_least=1)
    max_steps: int = setting(8, "Replies of the model that are checked.", at_least=1)

    name: ClassVar[str] = "quco_rag"

    def check_resources(self) -> None:
        """Raise InvalidSetting for an index that does not count."""
        counter(self.retriever)

    async def __call__(self, question: Question) -> Answer:
        count = counter(self.retriever)
        passages = await self._before(question, count)
        by_id = {passage.id: passage for passage in passages}
        text, rest, least = "", "", list[int]()
        for step in range(self.max_steps):
            if not rest:
                reply = await self.model.generate(
                    ask(REASON, question, () if step else passages, text), self.decoding(CHAIN_STOPS)
                )
                rest = reply.text.strip()
            trusted, queries, counts = await self._checked(question, rest, count)
            least += counts
            longer, rest = f"{text} {trusted}".strip(), ""
            if queries:
                passages = await self._looked_up(queries)
                by_id |= {passage.id: passage for passage in passages}
                again = await self.model.generate(ask(REASON, question, passages, longer), self.decoding(CHAIN_STOPS))
                sentence, rest = _first(again.text)
                events.emit(events.Written(sentence))
                longer = f"{longer} {sentence}".strip()
            ends = len(longer) <= len(text) or concludes(longer)
            text = longer
            if ends:
                break
        doubt = -float(min(least)) if least else None
        chain = ask(REASON, question, passages, text)
        answer = await answer_to(self.model, chain, self.decoding(SHORT_STOPS), tuple(by_id.values()), doubt, self.extraction)
        return await self.reread(self.model, question, answer)

    async def _before(self, question: Question, count: Count) -> tuple[Passage, ...]:
        """What is found for a question with rare names; nothing for one with others, or with none."""
        if not (names := runs_of_names(question.text)):
            return ()
        often = await mean_count(count, names)
        fires = often < self.rare
        verdict = "retrieve" if fires else "trust"
        events.emit(events.Decided("retrieve", EntityFrequency.name, -often, -self.rare, verdict, question.text))
        return await search(self.retriever, question.text, self.k) if fires else ()

    async def _checked(self, question: Question, text: str, count: Count) -> tuple[str, list[str], list[int]]:
        """The sentences before the first that is doubted, or says nothing, up to a conclusion; what to search for in place of
        the doubted one; and how often its pairs, and those before, meet."""
        trusted: list[str] = []
        least: list[int] = []
        for sentence in split_sentences(text) if text else []:
            if says_nothing(sentence):
                break
            name_pairs = pairs(sentence, question.text)
            meets = await gather(*(count(pair) for pair in name_pairs))
            least += meets
            doubted = [pair for pair, often in zip(name_pairs, meets, strict=True) if often < self.meeting]
            if name_pairs:
                self._emit(sentence, min(meets))
            if doubted:
                return " ".join(trusted), [_query(sentence, *pair) for pair in doubted], least
            trusted.append(sentence)
            if concludes(sentence):
                break
        return " ".join(trusted), [], least

    def _emit(self, sentence: str, least: int) -> None:
        verdict = "retrieve" if least < self.meeting else "trust"
        events.emit(events.Drafted(sentence, -float(least)))
        events.emit(events.Decided("retrieve", Cooccurrence.name, -float(least), -float(self.meeting), verdict, sentence))

    async def _looked_up(self, queries: Sequence[str]) -> tuple[Passage, ...]:
        results = await gather(*(search(self.retriever, query, self.k) for query in dict.fromkeys(queries)))
        return tuple({passage.id: passage for passages in results for passage in passages}.values())


def _query(sentence: str, head: str, tail: str) -> str:
    """The head and what the sentence says of it, without the tail."""
    rest = " ".join(sentence.replace(tail, " ").split()).rstrip(" .!?")
    return rest if head in rest else f"{head} {rest}"


def _first(text: str) -> tuple[str, str]:
    """The first sentence of a reply, with a conclusion behind it, and the rest."""
    sentences = split_sentences(text.strip()) if text.strip() else [""]
    end = 2 if len(sentences) > 1 and concludes(sentences[1]) else 1
    return " ".join(sentences[:end]), " ".join(sentences[end:])
