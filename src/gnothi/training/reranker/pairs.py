"""The pairs a re-ranker is trained on: per question the query [question : internal knowledge], and facts that fit or do not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput
from gnothi.methods.steps.reflection import Subject, query, reflect, subjects
from gnothi.protocols import KnowledgeGraph, LanguageModel
from gnothi.training.collecting import Collecting, Line
from gnothi.training.reranker.labels import Concepts, drawn, labelled
from gnothi.training.reranker.settings import PairSettings
from gnothi.types import Passage, Question

PAIRS = "pairs.jsonl"
"""A line holds ``question_id``, ``query``, ``positive`` and ``negative`` (texts of facts), ``candidates`` (how many facts were
within reach), ``usage``; or ``question_id`` and ``error``."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training question: what the re-ranker is asked, and texts it should rank high and low."""

    question_id: str
    query: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


class CollectingPairs(Collecting):
    """The pairs of a list of questions in a folder of its own, resumable."""

    file, what = PAIRS, "folder of training pairs"
    why = "facts that lead to it are what a re-ranker should find"

    @classmethod
    def require_usable(cls, questions: Sequence[Question]) -> None:
        """Raise InvalidInput also for a question without choices, of which the gold answer is one."""
        super().require_usable(questions)
        for question in questions:
            if not set(question.answers) & set(question.choices):
                raise InvalidInput(
                    f"question {question.id!r}: got {len(question.choices)} choices, the gold answer {question.answers[0]!r} "
                    "not among them; expected a multiple-choice question: facts that lead to wrong choices are what a "
                    "re-ranker is to tell from those that lead to the right one. Give a multiple-choice data set."
                )

    def finish(self) -> list[Example]:
        """Put the lines in the order of the questions, and give those that hold something to tell apart."""
        return examples(self.in_order())


async def pairs(question: Question, model: LanguageModel | None, graph: KnowledgeGraph, settings: PairSettings) -> Line:
    """The line of one question; no ``model`` is asked where the settings leave internal knowledge out."""
    about = await subjects(graph, question)
    internal: tuple[Passage, ...] = ()
    if settings.internal and model is not None:
        internal = await reflect(model, about, settings.max_tokens)
    concepts = await _concepts(question, about, internal, graph)
    around = await graph.neighbourhood([one.node for one in about], settings.hops, settings.cap)
    labels = labelled(around.facts, concepts)
    rng = random.Random(question.id)
    positive = drawn(labels.positive, settings.positives, rng)
    negative = [
        *drawn(labels.linked, settings.linked, rng),
        *drawn(labels.alike, settings.alike, rng),
        *drawn(labels.near, settings.near, rng),
        *drawn(labels.others, settings.random, rng),
    ]
    return {
        "query": query(question, internal),
        "positive": positive,
        "negative": [text for text in dict.fromkeys(negative) if text not in positive],
        "candidates": len(around.facts),
    }


async def _concepts(
    question: Question, about: Sequence[Subject], internal: Sequence[Passage], graph: KnowledgeGraph
) -> Concepts:
    wrong = [choice for choice in question.choices if choice not in question.answers]
    asked, gold, others = await gather(_nodes(graph, [question.text]), _nodes(graph, question.answers), _nodes(graph, wrong))
    names = {one.name for one in about if one.node in asked}
    known = await _nodes(graph, [passage.text for passage in internal if passage.title in names])
    return Concepts(asked, gold, others, known)


async def _nodes(graph: KnowledgeGraph, texts: Sequence[str]) -> frozenset[str]:
    linked = await gather(*(graph.link(text) for text in texts))
    return frozenset(mention.node for mentions in linked for mention in mentions)


def examples(lines: Sequence[Line]) -> list[Example]:
    """Those of the lines with a positive and a negative."""
    return [
        Example(line["question_id"], line["query"], tuple(line["positive"]), tuple(line["negative"]))
        for line in lines
        if line.get("positive") and line.get("negative")
    ]
