"""SearChain: search in the chain (Xu et al. 2024, arXiv 2304.14732): a whole chain of queries, then verified.

The model plans a chain of queries and answers all of them from memory. Retrieval then visits the nodes in turn: it completes
those that the model left unsolved and corrects those where what was read is surely something else. What follows a corrected
node is answered anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gnothi import events
from gnothi.concurrency import both
from gnothi.fields import resource, setting
from gnothi.methods.steps.parsing import as_choice, yes_or_no
from gnothi.methods.steps.prompts import ANSWER, ANSWER_YES_NO, EQUIVALENT, ask, require_text
from gnothi.methods.steps.quizzes import UNKNOWN, Solved, SplitSettings, ask_in_order, each_once
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.methods.steps.summary import evidence_of, summarise, uncertainty_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.judge import says_yes
from gnothi.signals.kinds.perplexity import mean_probability
from gnothi.signals.kinds.self_report import KNOW
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from gnothi.yes_or_no import asks_yes_or_no

LOGPROBS = Capabilities(logprobs=True)


@dataclass(frozen=True, slots=True)
class SearChain(SplitSettings):
    """Plans and answers a chain of queries from memory, then lets retrieval complete and correct it node by node."""

    model: LanguageModel
    retriever: Retriever
    reader: LanguageModel | None = resource("Model that reads answers, and how sure they are, from passages.")
    theta: float = setting(
        0.6, "θ: what was read corrects the chain when the reader is surer than this.", at_least=0.0, at_most=1.0
    )
    ask_whether_known: bool = setting(
        True, "Ask for each query whether the model knows; false: unsolved is what it answers with 'unknown'."
    )
    k: int = setting(1, "Passages to verify a node with.", at_least=1)
    max_nodes: int = setting(20, "A longer chain is not used: the question is the only node then.", at_least=1)

    name: ClassVar[str] = "searchain"
    usual_tokens: ClassVar[int] = 9_000

    def check_settings(self) -> None:
        require(self.name, "reader", self.reader, LOGPROBS)

    @property
    def needs(self) -> Capabilities:
        return LOGPROBS if self.reader is None else Capabilities()

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        nodes = await self.parts_of(question, self.model, self.max_nodes)
        drafted = {one.question: one for one in await ask_in_order(nodes, self._remember)}

        async def visit(query: str) -> Solved:
            return await self._visit(query, drafted)

        solved = each_once(await ask_in_order(nodes, visit))
        yes_no = not question.choices and asks_yes_or_no(question.text)
        evidence = evidence_of(solved)
        reader = self.reader or self.model
        if len(solved) == 1 and solved[0].question == question.text and not question.choices:
            answer = Answer(solved[0].answer, "", evidence, solved[0].disagreement)
        else:
            summary = await summarise(self.model, reader, question, solved, yes_no, self.max_tokens, extraction=self.extraction)
            answer = Answer(as_choice(summary.answer, question.choices), summary.rationale, evidence, uncertainty_of(solved))
        return await self.reread(reader, question, answer)

    # --- one node ------------------------------------------------------------------------------------------------------

    async def _remember(self, query: str) -> Solved:
        """A node as the model has it by itself; unsolved where it does not know."""
        prompt = _prompt(query)
        decoding = self.decoding(SHORT_STOPS)
        if self.ask_whether_known:
            known, reply = await both(says_yes(self.model, Prompt(KNOW, query)), self.model.generate(prompt, decoding))
        else:
            known, reply = True, await self.model.generate(prompt, decoding)
        answer = self._extract(query, reply.text)
        if not known or says_nothing(answer):
            return Solved(query, UNKNOWN, "nothing")
        return Solved(query, answer, "memory")

    async def _visit(self, query: str, drafted: Mapping[str, Solved]) -> Solved:
        """The node after retrieval: completed, corrected or kept. A query that an earlier correction changed is a new node."""
        if query in drafted:
            node, hits = drafted[query], await self.retriever.search(query, self.k)
        else:
            node, hits = await both(self._remember(query), self.retriever.search(query, self.k))
        passages = tuple(hit.passage for hit in hits)
        if not passages:
            return node
        reader = self.reader or self.model
        reply = await reader.generate(_prompt(query, passages), self.decoding(SHORT_STOPS))
        answer, confidence = self._extract(query, reply.text), mean_probability(reply)
        if says_nothing(answer):
            return node
        if node.source == "nothing":
            verdict = "complete"
        elif confidence > self.theta and not await self._same(query, node.answer, answer):
            verdict = "correct"
        else:
            verdict = "keep"
        events.emit(events.Decided("verify", "reader", confidence, self.theta, verdict, query))
        return node if verdict == "keep" else Solved(query, answer, "passages", passages, 1.0 - confidence)

    def _extract(self, query: str, reply: str) -> str:
        answer = self.extraction.short(reply, query)
        return yes_or_no(answer) if asks_yes_or_no(query) else answer

    async def _same(self, query: str, first: str, second: str) -> bool:
        if normalized(first) == normalized(second):
            return True
        return await says_yes(self.model, Prompt(EQUIVALENT, query, choices=(first, second)))


def _prompt(query: str, passages: tuple[Passage, ...] = ()) -> Prompt:
    return ask(ANSWER_YES_NO if asks_yes_or_no(query) else ANSWER, Question("", query), passages)
