"""Which facts a re-ranker should rank high: those that link what a question names to its gold choice.

The paper fine-tunes its cross-encoder on 500 training questions and does not say with which labels; this definition is ours. A
fact links two groups of nodes if it joins a node of one to a node of the other, or is one of two facts that do so through a
third node, which neither question nor choices name. Facts that link the question to its gold choice are positives, those that
link it to a wrong choice negatives. What a model says about the question's nodes names more nodes (the first hop of two); one
that joins such a node to the gold choice is a positive, too, and one that joins it to a wrong choice a negative.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gnothi.types import Fact


@dataclass(frozen=True, slots=True)
class Concepts:
    """Nodes that a question names, that the gold choice and the wrong choices name, and that the model's knowledge of the
    question's nodes names."""

    asked: frozenset[str]
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
    asked = concepts.asked - gold - wrong
    known = concepts.known - gold - wrong
    named = asked | gold | wrong
    positive = linking(facts, asked, gold, named) | joining(facts, known, gold)
    linked = (linking(facts, asked, wrong, named) | joining(facts, known, wrong)) - positive
    said = {fact.relation for fact in positive}
    around = named | known | {node for fact in positive for node in (fact.head, fact.tail)}
    groups: dict[str, list[Fact]] = {name: [] for name in ("positive", "linked", "alike", "near", "others")}
    for fact in facts:
        if fact in positive or fact in linked:
            groups["positive" if fact in positive else "linked"].append(fact)
        elif fact.relation in said:
            groups["alike"].append(fact)
        else:
            groups["near" if fact.head in around or fact.tail in around else "others"].append(fact)
    return Labels(**{name: tuple(found) for name, found in groups.items()})


def joining(facts: Sequence[Fact], one: Collection[str], other: Collection[str]) -> set[Fact]:
    """Facts between a node of ``one`` and a node of ``other``."""
    return {fact for fact in facts if (fact.head in one and fact.tail in other) or (fact.head in other and fact.tail in one)}


def linking(facts: Sequence[Fact], one: Collection[str], other: Collection[str], named: Collection[str]) -> set[Fact]:
    """Facts that join the two groups, by themselves or two of them through a node that is not ``named``."""
    between = [_across(facts, group) for group in (one, other)]
    middle = (between[0].keys() & between[1].keys()) - set(named)
    return joining(facts, one, other).union(*(between[0][node] | between[1][node] for node in middle))


def _across(facts: Sequence[Fact], group: Collection[str]) -> dict[str, set[Fact]]:
    """node → the facts that join it to the group."""
    found: dict[str, set[Fact]] = {}
    for fact in facts:
        for near, far in ((fact.head, fact.tail), (fact.tail, fact.head)):
            if near in group:
                found.setdefault(far, set()).add(fact)
    return found


def drawn(facts: Sequence[Fact], count: int, rng: random.Random) -> list[str]:
    """The texts of at most ``count`` of the facts, in their order, each once."""
    texts = list(dict.fromkeys(fact.text for fact in facts))
    if len(texts) <= count:
        return texts
    return [texts[place] for place in sorted(rng.sample(range(len(texts)), count))]
