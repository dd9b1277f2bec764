"""The pairs a re-ranker is trained on: per question the query [question : internal knowledge], and facts that fit or do not."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gnothi.concurrency import gather
from gnothi.errors import InvalidInput, counted
from gnothi.fields import check_ranges, setting
from gnothi.methods.steps.reflection import Subject, query, reflect, subjects
from gnothi.protocols import KnowledgeGraph, LanguageModel
from gnothi.training.collecting import Collecting, Line
from gnothi.types import Fact, Passage, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSettings:
    """Which pairs of [question : internal knowledge : fact] are made of a training question."""

    internal: bool = setting(True, "The model's own knowledge stands in the query, as where the method ranks.")
    max_tokens: int = setting(100, "Tokens of what the model says about one entity.", at_least=1)
    hops: int = setting(2, "Candidate facts are this many steps from what question and choices name.", at_least=1)
    cap: int = setting(100, "Candidate facts of one node, at most.", at_least=1)
    positives: int = setting(8, "Facts of a question that link to its gold choice, at most.", at_least=1)
    linked: int = setting(8, "Negatives that link to a wrong choice, at most.", at_least=0)
    alike: int = setting(16, "Negatives that say of others what a positive says, at most.", at_least=0)
    near: int = setting(12, "Negatives that say other things of what is named or known, at most.", at_least=0)
    random: int = setting(12, "Negatives drawn from the other candidates, at most.", at_least=0)

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How the cross-encoder is trained."""

    seed: int = setting(0, "Split, order and new weights.", at_least=0)
    epochs: int = setting(4, "Times that each pair is seen, at most.", at_least=1)
    batch: int = setting(64, "Pairs per step; those of one question stand together.", at_least=1)
    rows: int | None = setting(None, "Pairs in one pass of the model, where memory is short (none: all of a step).", at_least=1)
    gradient_checkpointing: bool = setting(
        False, "Compute activations again instead of keeping them: less memory, a third more time."
    )
    learning_rate: float = setting(2e-5, "Learning rate, falling linearly to zero.", at_least=0.0)
    warmup: float = setting(0.1, "Share of the steps in which it rises.", at_least=0.0, at_most=1.0)
    weight_decay: float = setting(0.01, "Weight decay.", at_least=0.0)
    limit: int = setting(
        512, "Tokens of a pair; a longer query loses the beginning of its question, and knowledge its ends.", at_least=16
    )
    validation: float = setting(0.1, "Share of the questions that is kept for validation.", at_least=0.01, at_most=0.5)
    evaluate_every: int = setting(100, "Steps between two validations; each is a checkpoint.", at_least=1)
    patience: int = setting(5, "Validations without a better one before training ends.", at_least=1)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.rows is not None and self.batch % self.rows:
            raise ValueError(f"setting 'rows': got {self.rows}, expected a divisor of batch, which is {self.batch}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings(TrainingSettings):
    """Both, as the command line takes them: ``pairs.cap`` and the like for the first."""

    pairs: PairSettings = PairSettings()


# Which facts a re-ranker should rank high: those that link what a question names to its gold choice.
#
# The paper fine-tunes its cross-encoder on 500 training questions and does not say with which labels; this definition is
# ours. A fact links two groups of nodes if it joins a node of one to a node of the other, or is one of two facts that do so
# through a third node, which neither question nor choices name. Facts that link the question to its gold choice are
# positives, those that link it to a wrong choice negatives. What a model says about the question's nodes names more nodes
# (the first hop of two); one that joins such a node to the gold choice is a positive, too, and one that joins it to a wrong
# choice a negative.
@dataclass(frozen=True, slots=True)
class Concepts:
    """Nodes that a question names, that the gold choice and the wrong choices name, and that the model's knowledge of the
    question's nodes names."""

    question: frozenset[str]
    gold: frozenset[str]
    wrong: frozenset[str]
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Labels:
    """Facts in their order: positives; negatives that link to a wrong choice, that say of others what a positive says (the same
    relation), that say other things of a node which a positive, the question, its choices or the model's knowledge names; and
    the rest."""

    positive: tuple[Fact, ...]
    linked: tuple[Fact, ...]
    alike: tuple[Fact, ...]
    near: tuple[Fact, ...]
    others: tuple[Fact, ...]


def labelled(facts: Sequence[Fact], concepts: Concepts) -> Labels:
    """Every fact in one of five groups. A node that two sides name counts for the gold choice before the wrong ones, and for a
    choice before the question."""
    gold = concepts.gold
    wrong = concepts.wrong - gold
    question = concepts.question - gold - wrong
    known = concepts.known - gold - wrong
    named = question | gold | wrong
    positive = linking(facts, question, gold, named) | joining(facts, known, gold)
    linked = (linking(facts, question, wrong, named) | joining(facts, known, wrong)) - positive
    relations = {fact.relation for fact in positive}
    around = named | known | {node for fact in positive for node in (fact.head, fact.tail)}
    groups: dict[str, list[Fact]] = {name: [] for name in ("positive", "linked", "alike", "near", "others")}
    for fact in facts:
        if fact in positive or fact in linked:
            groups["positive" if fact in positive else "linked"].append(fact)
        elif fact.relation in relations:
            groups["alike"].append(fact)
        else:
            groups["near" if fact.head in around or fact.tail in around else "others"].append(fact)
    return Labels(**{name: tuple(members) for name, members in groups.items()})


def joining(facts: Sequence[Fact], first: Collection[str], second: Collection[str]) -> set[Fact]:
    """Facts between a node of ``first`` and a node of ``second``."""
    return {
        fact for fact in facts if (fact.head in first and fact.tail in second) or (fact.head in second and fact.tail in first)
    }


def linking(facts: Sequence[Fact], first: Collection[str], second: Collection[str], named: Collection[str]) -> set[Fact]:
    """Facts that join the two groups, by themselves or two of them through a node that is not ``named``."""
    between = [_across(facts, group) for group in (first, second)]
    middle = (between[0].keys() & between[1].keys()) - set(named)
    return joining(facts, first, second).union(*(between[0][node] | between[1][node] for node in middle))


def _across(facts: Sequence[Fact], group: Collection[str]) -> dict[str, set[Fact]]:
    """node → the facts that join it to the group."""
    facts_by_node: dict[str, set[Fact]] = {}
    for fact in facts:
        for near, far in ((fact.head, fact.tail), (fact.tail, fact.head)):
            if near in group:
                facts_by_node.setdefault(far, set()).add(fact)
    return facts_by_node


def drawn(facts: Sequence[Fact], count: int, rng: random.Random) -> list[str]:
    """The texts of at most ``count`` of the facts, in their order, each once."""
    texts = list(dict.fromkeys(fact.text for fact in facts))
    if len(texts) <= count:
        return texts
    return [texts[place] for place in sorted(rng.sample(range(len(texts)), count))]


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
                    f"question {question.id!r}: got {counted(len(question.choices), 'choice')}, the gold answer "
                    f"{question.answers[0]!r} not among them; expected a multiple-choice question: a re-ranker learns to tell "
                    "facts that lead to the right choice from facts that lead to a wrong one. Give a multiple-choice data set."
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
    in_question, gold, others = await gather(
        _nodes(graph, [question.text]), _nodes(graph, question.answers), _nodes(graph, wrong)
    )
    names = {one.name for one in about if one.node in in_question}
    known = await _nodes(graph, [passage.text for passage in internal if passage.title in names])
    return Concepts(in_question, gold, others, known)


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
