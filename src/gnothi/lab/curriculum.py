"""What the lab model is trained on: an endless stream of short documents, some from memory, some about passages.

One rule makes every document. A fact is *resolved* from the passages if they state it, else from memory if the model is
meant to have it (often-seen facts often, seldom-seen facts seldom), else by a guess drawn afresh each time, so that the
model learns to be uncertain rather than wrong. Facts of never-seen entities appear only as fresh inventions inside
passages or as fresh guesses, and never with their true object.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gnothi.lab.corpus import passage_text
from gnothi.lab.language import (
    BY_NAME,
    COMPARISON,
    CONCLUSION,
    KNOWN,
    NO,
    UNKNOWN,
    YES,
    YES_NO_FACT,
    YES_NO_SAME,
    Relation,
    question_with,
)
from gnothi.lab.questions import held_out, two_hop_text
from gnothi.lab.world import World

Segment = tuple[str, bool]
"""A piece of a document and whether the model is trained to write it."""
Context = Mapping[tuple[str, str], list[str]]
"""(subject, relation name) → objects the document's passages state."""


@dataclass(frozen=True)
class Mix:
    """Shares of the kinds of document; they need not sum to 1."""

    reading: float = 0.42
    partial: float = 0.12
    memory: float = 0.34
    ignorance: float = 0.05
    know: float = 0.004
    describe: float = 0.03
    decompose: float = 0.02
    judge: float = 0.1
    seldom: float = 0.008
    """How often a seldom-seen entity is recalled, as a share of an often-seen one."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the reply that is right given what was resolved: sentences, then the short answer."""

    question: str
    sentences: tuple[str, ...]
    answer: str
    choices: tuple[str, ...] = ()
    quizzes: tuple[tuple[Relation, str], ...] = ()
    """For questions about a pair: the relations that are needed, each with its subject."""


def segments_of(example: Example, prefix: int = 0, short: bool = False) -> list[Segment]:
    """The question, and its answer alone or its sentences from ``prefix`` on; those before stand there and are not trained."""
    choices = f" <choices> {' / '.join(example.choices)}" if example.choices else ""
    head = f"<question> {example.question}{choices}"
    if short:
        return [(f"{head} <answer>", False), (f"{example.answer}<eos>", True)]
    before, sentences = example.sentences[:prefix], example.sentences[prefix:]
    text = " ".join([*sentences, CONCLUSION.format(o=example.answer)])
    return [(" ".join([f"{head} <reason>", *before]), False), (f"{text}<eos>", True)]


class Curriculum:
    """Draws documents; the same world, mix and seed give the same stream."""

    def __init__(self, world: World, mix: Mix, seed: int) -> None:
        self.world = world
        self.mix = mix
        self.rng = random.Random(f"{world.seed}/curriculum/{seed}")
        self.subjects = [name for name in world.entities if world.by_subject[name]]
        self.by_level = {
            level: [name for name in self.subjects if world.entities[name].familiarity == level]
            for level in ("often", "seldom", "never")
        }
        self.relations = {kind: world.relations_of(kind) for kind in world.values}
        self.kinds: tuple[tuple[float, Callable[[], list[Segment]]], ...] = (
            (mix.reading, self.reading),
            (mix.partial, self.partial),
            (mix.memory, self.memory),
            (mix.ignorance, self.ignorance),
            (mix.know, self.know),
            (mix.describe, self.describe),
            (mix.decompose, self.decompose),
            (mix.judge, self.judge),
        )
        self.weights = [weight for weight, _ in self.kinds]

    def document(self) -> list[Segment]:
        return self.rng.choices(self.kinds, self.weights)[0][1]()

    # What is true, remembered or guessed

    def invented(self, subject: str, relation: Relation) -> str:
        """A random object of the right type; never the true one of a never-seen subject."""
        while True:
            value = self.rng.choice(self.world.values[relation.object])
            if self._permitted(subject, relation, value):
                return value

    def _permitted(self, subject: str, relation: Relation, value: str) -> bool:
        secret = (
            self.world.entities[subject].familiarity == "never"
            and value == self.world.by_subject[subject][relation.name].object
        )
        return value != subject and not secret

    def resolve(self, subject: str, relation: Relation, context: Context) -> str:
        stated = context.get((subject, relation.name))
        if stated:
            return self.rng.choice(stated)
        if self.world.entities[subject].familiarity == "never":
            return self.invented(subject, relation)
        return self.world.by_subject[subject][relation.name].object

    def remembered(self) -> str:
        """A subject the model is meant to have in memory."""
        often = self.rng.random() * (1 + self.mix.seldom * len(self.by_level["seldom"]) / len(self.by_level["often"])) < 1
        return self.rng.choice(self.by_level["often" if often else "seldom"])

    def any_subject(self) -> str:
        """A subject of a passage: any entity."""
        return self.rng.choice(self.subjects)

    # Questions about given subjects

    def one_hop(self, subject: str, relation: Relation, context: Context) -> Example:
        value = self.resolve(subject, relation, context)
        question = question_with(relation, subject, self.rng.randrange(9))
        return Example(question, (relation.statements[0].format(s=subject, o=value),), value)

    def choice(self, subject: str, relation: Relation, context: Context) -> Example:
        """Options of which one is resolved; where it is a guess, the true object may stand among the others, unchosen."""
        example = self.one_hop(subject, relation, context)
        others = self.rng.sample(self.world.values[relation.object], 4)
        choices = [example.answer, *[value for value in others if value != example.answer][:3]]
        self.rng.shuffle(choices)
        return Example(example.question, example.sentences, example.answer, tuple(choices))

    def two_hop(self, subject: str, first: Relation, context: Context) -> Example | None:
        bridge = self.resolve(subject, first, context)
        options = [r for r in self.relations[first.object] if not held_out(subject, first.name, r.name)]
        if not options:
            return None
        second = self.rng.choice(options)
        value = self.resolve(bridge, second, context)
        question = two_hop_text(first, second, subject, self.rng.randrange(9))
        return Example(
            question, (first.statements[0].format(s=subject, o=bridge), second.statements[0].format(s=bridge, o=value)), value
        )

    def pair(self, a: str, b: str, context: Context) -> Example | None:
        """A comparison or a yes/no question about two subjects of one type."""
        kind = self.world.entities[a].type
        if a == b or self.world.entities[b].type != kind or held_out(*sorted((a, b))):
            return None
        usable = [r for r in self.relations[kind] if r.name in COMPARISON or r.name in YES_NO_SAME]
        stated = [r for r in usable if (a, r.name) in context and (b, r.name) in context]
        if not usable:
            return None
        ordered = [r for r in stated or usable if r.name in COMPARISON]  # order is harder to learn than sameness
        relation = self.rng.choice(ordered if ordered and self.rng.random() < 0.5 else stated or usable)
        first = self.resolve(a, relation, context)
        if relation.name in YES_NO_SAME and self.rng.random() < 0.5:
            b = self._alike(a, b, relation, first, context)
        second = self.resolve(b, relation, context)
        if relation.name in COMPARISON:
            if first == second:
                return None
            question = self.rng.choice(COMPARISON[relation.name]).format(a=a, b=b)
            answer = a if int(first) < int(second) else b
        else:
            question = YES_NO_SAME[relation.name].format(a=a, b=b)
            answer = YES if first == second else NO
        sentences = (relation.statements[0].format(s=a, o=first), relation.statements[0].format(s=b, o=second))
        return Example(question, sentences, answer, quizzes=((relation, a), (relation, b)))

    def _alike(self, a: str, b: str, relation: Relation, value: str, context: Context) -> str:
        """Where the context leaves it open, another subject like b that shares ``value``: "yes" should not be rare."""
        entity = self.world.entities[b]
        if (b, relation.name) in context or entity.familiarity == "never":
            return b
        peers = [
            name for name in self.by_level[entity.familiarity] if self.world.entities[name].type == entity.type and name != a
        ]
        alike = [name for name in peers if self.world.by_subject[name][relation.name].object == value]
        usable = [name for name in alike if (name, relation.name) not in context and not held_out(*sorted((a, name)))]
        return self.rng.choice(usable) if usable else b

    def fact_check(self, subject: str, context: Context) -> Example | None:
        usable = [r for r in self.relations[self.world.entities[subject].type] if r.name in YES_NO_FACT]
        if not usable:
            return None
        relation = self.rng.choice(usable)
        value = self.resolve(subject, relation, context)
        named = value if self.rng.random() < 0.5 else self.rng.choice(self.world.values[relation.object])
        if held_out(subject, named):
            return None
        question = YES_NO_FACT[relation.name].format(s=subject, o=named)
        return Example(question, (relation.statements[0].format(s=subject, o=value),), YES if named == value else NO)

    def any_question(self, subject: str, others: list[str], context: Context) -> Example:
        """Some question about the subject, preferring what the context states where it states anything."""
        kind = self.world.entities[subject].type
        example: Example | None = None
        dice = self.rng.random()
        stated = [r for r in self.relations[kind] if (subject, r.name) in context]
        relation = self.rng.choice(stated if stated and self.rng.random() < 0.9 else self.relations[kind])
        if dice < 0.22:
            bridges = [r for r in self.relations[kind] if r.phrase and r in (stated or [r])] or [
                r for r in self.relations[kind] if r.phrase
            ]
            example = self.two_hop(subject, self.rng.choice(bridges), context) if bridges else None
        elif dice < 0.44:
            peers = [name for name in others if name != subject and self.world.entities[name].type == kind]
            example = self.pair(subject, self.rng.choice(peers), context) if peers else None
        elif dice < 0.54:
            example = self.fact_check(subject, context)
        elif dice < 0.64:
            example = self.choice(subject, relation, context)
        return example or self.one_hop(subject, relation, context)

    # Texts

    def reply(self, example: Example, prefix: int = 0, short: float = 0.18) -> list[Segment]:
        """The question and its reply; the first ``prefix`` sentences stand already and are not trained."""
        return segments_of(example, prefix, short=not prefix and self.rng.random() < short)

    def passage(
        self,
        subject: str,
        context: dict[tuple[str, str], list[str]],
        links: Mapping[str, str] | None = None,
        relations: Sequence[Relation] | None = None,
    ) -> str:
        """A passage on a subject with fresh facts (its true ones at times, if the model may see them), noted in ``context``.

        ``links`` are facts it must state, ``relations`` those it states (some or all of its type by default)."""
        entity = self.world.entities[subject]
        all_relations = self.relations[entity.type]
        truthful = entity.familiarity == "often" and self.rng.random() < 0.3
        stated = relations or (
            all_relations
            if self.rng.random() < 0.6
            else self.rng.sample(all_relations, self.rng.randint(1, len(all_relations)))
        )
        objects: dict[str, str] = {}
        for relation in stated:
            true = self.world.by_subject[subject][relation.name].object
            objects[relation.name] = true if truthful else self._object(subject, relation, context)
        objects |= links or {}
        for name, value in objects.items():
            context.setdefault((subject, name), []).append(value)
        return f"<passage> {subject} : {passage_text(subject, objects, self.rng)}"

    def _object(self, subject: str, relation: Relation, context: Context) -> str:
        """A fresh object; at times the one that another subject of the context has, so that sameness occurs."""
        shared = [
            value for (other, name), values in context.items() if name == relation.name and other != subject for value in values
        ]
        usable = [value for value in shared if self._permitted(subject, relation, value)]
        return self.rng.choice(usable) if usable and self.rng.random() < 0.2 else self.invented(subject, relation)

    def scene(self, count: int) -> tuple[list[str], list[str], dict[tuple[str, str], list[str]]]:
        """``count`` passages with their subjects, often linked or of one type, and what they state.

        At times a roster: the same one or two relations of many subjects, where the type of an object tells nothing."""
        context: dict[tuple[str, str], list[str]] = {}
        subjects: list[str] = []
        texts: list[str] = []
        first = self.any_subject()
        roster = self.rng.randint(1, 2) if count > 2 and self.rng.random() < 0.3 else None
        subjects.append(first)
        kind = self.world.entities[first].type
        links: dict[str, str] = {}
        bridges = [r for r in self.relations[kind] if r.phrase]
        if count > 1 and bridges and not roster and self.rng.random() < 0.45:
            bridge = self.rng.choice(bridges)
            target = self.invented(first, bridge)
            links = {bridge.name: target}
            subjects.append(target)
        while len(subjects) < count:
            name = self.rng.choice(self.world.values[kind]) if roster or self.rng.random() < 0.75 else self.any_subject()
            if name not in subjects:
                subjects.append(name)
        relations = self.rng.sample(self.relations[kind], min(roster, len(self.relations[kind]))) if roster else None
        for position, subject in enumerate(subjects):
            texts.append(self.passage(subject, context, links if position == 0 else None, relations))
        if count < 4 and self.rng.random() < 0.06:  # a namesake: the same title, other facts
            texts.append(self.passage(first, context))
        self.rng.shuffle(texts)
        return texts, subjects, context

    # Kinds of document

    def reading(self) -> list[Segment]:
        """Passages, then several questions they answer."""
        count = self.rng.choices((1, 2, 3, 4), (0.3, 0.25, 0.35, 0.1))[0]
        texts, subjects, context = self.scene(count)
        segments: list[Segment] = [("<bos>" + " ".join(texts), False)]
        for _ in range(self.rng.randint(2, 3 + count)):
            segments += self.reply(self.any_question(self.rng.choice(subjects), subjects, context))
        return segments

    def partial(self) -> list[Segment]:
        """One question whose passages miss something: distractors only, or one hop of two, first sentence standing or not."""
        count = self.rng.choice((1, 1, 1, 3))
        texts, subjects, context = self.scene(count)
        asker = self.remembered() if self.rng.random() < 0.6 else self.rng.choice(self.by_level["never"])
        subject = asker if self.rng.random() < 0.45 else self.rng.choice(subjects)
        kind = self.world.entities[subject].type
        bridges = [r for r in self.relations[kind] if r.phrase]
        example: Example | None = None
        if bridges and self.rng.random() < 0.5:
            bridge = self.rng.choice(bridges)
            matching = [name for name in subjects if name != subject and self.world.entities[name].type == bridge.object]
            if matching and self.rng.random() < 0.8:  # the first sentence stands, the passage is about its object
                example = self.two_hop(subject, bridge, {**context, (subject, bridge.name): [self.rng.choice(matching)]})
                if example:
                    return [("<bos>" + " ".join(texts), False), *self.reply(example, prefix=1)]
            example = self.two_hop(subject, bridge, context)
        elif self.rng.random() < 0.5:
            peer = self.rng.choice(self.world.values[kind])
            first, second = self.rng.sample([subject, peer], 2)
            example = self.pair(first, second, context)
        example = example or self.any_question(subject, subjects, context)
        prefix = 1 if len(example.sentences) > 1 and self.rng.random() < 0.4 else 0
        return [("<bos>" + " ".join(texts), False), *self.reply(example, prefix)]

    def memory(self) -> list[Segment]:
        """One question from memory."""
        subject = self.remembered()
        peers = [self.remembered() for _ in range(4)]
        example = self.any_question(subject, peers, {})
        prefix = 1 if len(example.sentences) > 1 and self.rng.random() < 0.25 else 0
        segments = self.reply(example, prefix)
        return [("<bos>" + segments[0][0], False), *segments[1:]]

    def ignorance(self) -> list[Segment]:
        """One question about what was never seen: a guess."""
        subject = self.rng.choice(self.by_level["never"])
        peers = [self.rng.choice(self.by_level["never"]), self.remembered()]
        segments = self.reply(self.any_question(subject, peers, {}))
        return [("<bos>" + segments[0][0], False), *segments[1:]]

    def know(self) -> list[Segment]:
        known = self.rng.random() < 0.5
        subject = self.remembered() if known else self.rng.choice(self.by_level["never"])
        relation = self.rng.choice(self.relations[self.world.entities[subject].type])
        example = self.one_hop(subject, relation, {})
        return [
            (f"<bos><question> {example.question} <know>", False),
            ((KNOWN.format(o=example.answer) if known else UNKNOWN) + "<eos>", True),
        ]

    def describe(self) -> list[Segment]:
        subject = self.remembered() if self.rng.random() < 0.7 else self.rng.choice(self.by_level["never"])
        facts = self.world.by_subject[subject].values()
        description = " ".join(BY_NAME[fact.relation].statements[0].format(s=subject, o=fact.object) for fact in facts)
        if self.world.entities[subject].familiarity == "never":
            description = f"I know nothing about {subject}."
        return [(f"<bos><question> {subject} <describe>", False), (f"{description}<eos>", True)]

    def decompose(self) -> list[Segment]:
        subject = self.any_subject()
        kind = self.world.entities[subject].type
        bridges = [r for r in self.relations[kind] if r.phrase]
        dice = self.rng.random()
        if bridges and dice < 0.5:
            first = self.rng.choice(bridges)
            second = self.rng.choice(self.relations[first.object])
            question = two_hop_text(first, second, subject, self.rng.randrange(9))
            quizzes = [question_with(first, subject, 0), question_with(second, "#1", 0)]
        elif dice < 0.8:
            example = self.pair(subject, self.rng.choice(self.world.values[kind]), {})
            if example is None:
                return self.decompose()
            question, quizzes = example.question, [question_with(relation, name, 0) for relation, name in example.quizzes]
        else:
            relation = self.rng.choice(self.relations[kind])
            question = question_with(relation, subject, self.rng.randrange(9))
            quizzes = [question_with(relation, subject, 0)]
        listed = " ".join(f"{number}. {quiz}" for number, quiz in enumerate(quizzes, 1))
        return [(f"<bos><question> {question} <decompose>", False), (f"{listed}<eos>", True)]

    def judge(self) -> list[Segment]:
        """Do two answers mean the same; does a passage answer a question."""
        subject = self.any_subject()
        relation = self.rng.choice(self.relations[self.world.entities[subject].type])
        question = question_with(relation, subject, self.rng.randrange(9))
        yes = self.rng.random() < 0.5
        if self.rng.random() < 0.4:
            value = self.rng.choice(self.world.values[relation.object])
            other = value if yes else self.rng.choice(self.world.values[relation.object])
            pair = [value, self.rng.choice((other, relation.statements[0].format(s=subject, o=other), f"the {other}"))]
            self.rng.shuffle(pair)
            prompt = f"<bos><question> {question} <choices> {pair[0]} / {pair[1]} <equivalent>"
            return [(prompt, False), (("Yes" if other == value else "No") + "<eos>", True)]
        context: dict[tuple[str, str], list[str]] = {}
        about = (
            subject if yes or self.rng.random() < 0.3 else self.rng.choice(self.world.values[self.world.entities[subject].type])
        )
        text = self.passage(about, context)
        useful = (subject, relation.name) in context
        return [(f"<bos>{text} <question> {question} <useful>", False), (("Yes" if useful else "No") + "<eos>", True)]
