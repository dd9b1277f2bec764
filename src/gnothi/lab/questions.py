"""Questions about the world, each with what the model saw of it, what the corpus holds, and so what is right to do.

Two-hop, comparison and yes/no questions are held out from training: the model has seen their facts (or not), never the
question. One-hop and multiple-choice questions of often-seen facts are, by definition, among those it was trained on.
Two-hop multiple choice is what knowledge of one's own is needed for to look the rest up: the question names the first subject
only, the fact that decides is about another. It is no part of the default mix.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

from gnothi.lab.language import BY_NAME, COMPARISON, NO, YES, YES_NO_FACT, YES_NO_SAME, Relation, question_with
from gnothi.lab.world import FAMILIARITIES, Fact, World
from gnothi.types import Question

Kind = Literal["one_hop", "two_hop", "comparison", "yes_no", "choice", "two_hop_choice"]
Action = Literal["trust", "retrieve", "abstain"]
FactName = tuple[str, str]
"""Subject and relation: what a question has to know, whatever the object is."""
TRAINING_SEED = 1
"""The draw of questions to choose or train something on; the default test questions are draw 0."""
KINDS: tuple[Kind, ...] = ("one_hop", "two_hop", "comparison", "yes_no", "choice", "two_hop_choice")
DEFAULT_MIX: Mapping[Kind, float] = MappingProxyType(
    {"one_hop": 0.42, "two_hop": 0.22, "comparison": 0.1, "yes_no": 0.1, "choice": 0.16}
)
_COVERAGE_ORDER = ("absent", "contradicted", "ambiguous", "covered")
_HELD_OUT_SHARE = 4


def held_out(*key: str) -> bool:
    """Whether a composed question about these names is kept from training; one in four, by hash."""
    return hashlib.blake2b("/".join(key).encode(), digest_size=4).digest()[0] % _HELD_OUT_SHARE == 0


def right_action(familiarity: str, coverage: str) -> Action:
    """What gives the best chance of a right answer for one fact."""
    if familiarity == "often":
        return "trust"
    if familiarity == "seldom":
        return "retrieve" if coverage == "covered" else "trust"
    return "retrieve" if coverage in ("covered", "ambiguous") else "abstain"


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before its familiarity is known: text, gold answer, facts needed in order."""

    kind: Kind
    key: str
    text: str
    answer: str
    facts: tuple[Fact, ...]
    choices: tuple[str, ...] = ()


def two_hop_text(first: Relation, second: Relation, subject: str, variant: int) -> str:
    return question_with(second, first.phrase.format(s=subject), variant)


def _one_hop(world: World, rng: random.Random) -> Draft:
    fact = rng.choice(world.facts)
    relation = BY_NAME[fact.relation]
    variant = rng.randrange(len(relation.questions))
    return Draft(
        "one_hop", f"{fact.subject}/{relation.name}", question_with(relation, fact.subject, variant), fact.object, (fact,)
    )


def _two_hop(world: World, rng: random.Random, composition_held_out: bool = True) -> Draft | None:
    fact = rng.choice(world.facts)
    first = BY_NAME[fact.relation]
    if not first.phrase:
        return None
    second_fact = rng.choice(list(world.by_subject[fact.object].values()))
    second = BY_NAME[second_fact.relation]
    if held_out(fact.subject, first.name, second.name) != composition_held_out:
        return None
    text = two_hop_text(first, second, fact.subject, rng.randrange(len(second.questions)))
    return Draft("two_hop", f"{fact.subject}/{first.name}/{second.name}", text, second_fact.object, (fact, second_fact))


def _pair(world: World, rng: random.Random, relation: Relation) -> tuple[Fact, Fact] | None:
    names = world.values[relation.subject]
    a, b = (world.by_subject[name][relation.name] for name in rng.sample(names, 2))
    return (a, b) if held_out(*sorted((a.subject, b.subject))) else None


def _comparison(world: World, rng: random.Random) -> Draft | None:
    relation = BY_NAME[rng.choice(list(COMPARISON))]
    pair = _pair(world, rng, relation)
    if pair is None or pair[0].object == pair[1].object:
        return None
    a, b = pair
    text = rng.choice(COMPARISON[relation.name]).format(a=a.subject, b=b.subject)
    answer = a.subject if int(a.object) < int(b.object) else b.subject
    return Draft("comparison", f"{a.subject}/{b.subject}/{relation.name}", text, answer, pair)


def _yes_no(world: World, rng: random.Random) -> Draft | None:
    truth = rng.random() < 0.5
    if rng.random() < 0.5:
        relation = BY_NAME[rng.choice(list(YES_NO_SAME))]
        pair = _pair(world, rng, relation)
        if pair is None or (pair[0].object == pair[1].object) != truth:
            return None
        text = YES_NO_SAME[relation.name].format(a=pair[0].subject, b=pair[1].subject)
        return Draft("yes_no", f"{pair[0].subject}/{pair[1].subject}/{relation.name}", text, YES if truth else NO, pair)
    relation = BY_NAME[rng.choice(list(YES_NO_FACT))]
    fact = world.by_subject[rng.choice(world.values[relation.subject])][relation.name]
    named = fact.object if truth else rng.choice(world.values[relation.object])
    if not held_out(fact.subject, named) or (named == fact.object) != truth:
        return None
    text = YES_NO_FACT[relation.name].format(s=fact.subject, o=named)
    return Draft("yes_no", f"{fact.subject}/{relation.name}/{named}", text, YES if truth else NO, (fact,))


def _choice(world: World, rng: random.Random) -> Draft:
    base = _one_hop(world, rng)
    fact = base.facts[0]
    others = rng.sample(
        [value for value in world.values[BY_NAME[fact.relation].object] if value not in (fact.object, fact.subject)], 3
    )
    choices = [fact.object, *others]
    rng.shuffle(choices)
    return Draft("choice", f"choice/{base.key}", base.text, base.answer, base.facts, tuple(choices))


def _two_hop_choice(world: World, rng: random.Random, composition_held_out: bool = True) -> Draft | None:
    """Beside the answer: what a wrong account of the second fact says, where a wrong account of the first leads, and others."""
    base = _two_hop(world, rng, composition_held_out)
    if base is None or base.answer == base.facts[0].subject:
        return None
    first, second = base.facts
    pool = [value for value in world.values[BY_NAME[second.relation].object] if value not in (first.subject, first.object)]
    misleading = [second.wrong, world.by_subject[first.wrong][second.relation].object]
    choices = [base.answer, *dict.fromkeys(value for value in misleading if value in pool and value != base.answer)]
    choices += rng.sample([value for value in pool if value not in choices], 4 - len(choices))
    rng.shuffle(choices)
    return Draft("two_hop_choice", base.key, base.text, base.answer, base.facts, tuple(choices))


Drafter = Callable[[World, random.Random], Draft | None]
_DRAFTERS: Mapping[Kind, Drafter] = {
    "one_hop": _one_hop,
    "two_hop": _two_hop,
    "comparison": _comparison,
    "yes_no": _yes_no,
    "choice": _choice,
    "two_hop_choice": _two_hop_choice,
}


def _drafts(world: World, drafter: Drafter, rng: random.Random, without: Set[FactName]) -> Iterator[Draft]:
    keys: set[str] = set()
    misses = 0
    while misses < 20_000:
        draft = drafter(world, rng)
        if draft is None or draft.key in keys or any((fact.subject, fact.relation) in without for fact in draft.facts):
            misses += 1
            continue
        misses = 0
        keys.add(draft.key)
        yield draft


def _describe(world: World, draft: Draft) -> dict[str, Any]:
    hops = []
    for fact in draft.facts:
        entity = world.entities[fact.subject]
        action = right_action(entity.familiarity, entity.coverage)
        hops.append(
            {
                "subject": fact.subject,
                "relation": fact.relation,
                "object": fact.object,
                "familiarity": entity.familiarity,
                "coverage": entity.coverage,
                "right_action": action,
            }
        )
    actions = {hop["right_action"] for hop in hops}
    return {
        "familiarity": max((hop["familiarity"] for hop in hops), key=FAMILIARITIES.index),
        "coverage": min((hop["coverage"] for hop in hops), key=_COVERAGE_ORDER.index),
        "right_action": "abstain" if "abstain" in actions else "retrieve" if "retrieve" in actions else "trust",
        "hops": hops,
    }


def _counts(shares: Mapping[Kind, float], n: int) -> dict[Kind, int]:
    """n by shares: each is rounded down, and the largest remainders get what is left (Hamilton's method)."""
    exact = {kind: n * share for kind, share in shares.items()}
    counts = {kind: int(value + 1e-9) for kind, value in exact.items()}
    short = n - sum(counts.values())
    for kind in sorted(exact, key=lambda kind: counts[kind] - exact[kind])[:short]:
        counts[kind] += 1
    return counts


def questions(
    world: World,
    kind: Kind | None = None,
    n: int = 500,
    seed: int = 0,
    without: Set[FactName] = frozenset(),
    drafters: Mapping[Kind, Drafter] = _DRAFTERS,
) -> list[Question]:
    """n distinct questions of one kind, or of all kinds in the default mix, interleaved; the same arguments, the same list.

    ``without``: facts that no question may need; fewer than n come where the world has no more. ``metadata``: ``familiarity``
    (of the least familiar fact), ``coverage`` (of the worst-held fact), ``right_action`` and ``hops``, the facts needed in
    order.
    """
    drafts: list[Draft] = []
    for name, count in _counts({kind: 1.0} if kind else DEFAULT_MIX, n).items():
        rng = random.Random(f"{world.seed}/questions/{seed}/{name}")
        drafts += islice(_drafts(world, drafters[name], rng, without), count)
    random.Random(f"{world.seed}/order/{seed}").shuffle(drafts)
    return [
        Question(
            f"lab-{draft.kind}-{draft.key.replace(' ', '_')}",
            draft.text,
            (draft.answer,),
            draft.choices,
            draft.kind,
            _describe(world, draft),
        )
        for draft in drafts
    ]


def facts_needed(questions: Iterable[Question]) -> frozenset[FactName]:
    """The facts that these questions of the laboratory are about."""
    return frozenset((hop["subject"], hop["relation"]) for question in questions for hop in question.metadata["hops"])


def training_questions(world: World, kind: Kind | None = None, n: int = 500) -> list[Question]:
    """Like ``questions``, but none needs a fact that one of the default test questions (``questions(world)``) needs.

    Those of the kind ``two_hop_choice`` share no fact with the 500 test questions of that kind either. So many facts are left
    aside then that they are made of compositions not held out from the model's training, of which no test question is made."""
    tested = facts_needed(questions(world))
    if kind != "two_hop_choice":
        return questions(world, kind, n, TRAINING_SEED, tested)
    tested |= facts_needed(questions(world, kind))
    other = partial(_two_hop_choice, composition_held_out=False)
    return questions(world, kind, n, TRAINING_SEED, tested, {**_DRAFTERS, kind: other})
