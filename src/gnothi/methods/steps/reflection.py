"""What a model knows by itself about the things a question names (IEKR, Du and Zhao 2024, section 4.1).

"Tell me something about ..." is asked of every entity of the question and of its choices; the replies together are the internal
knowledge, which is searched with and read. The paper's reader is fed a "revised" form of it (section 4.3), by a verifier (5.2)
of which it never says what it is asked; that instruction is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gnothi import events
from gnothi.concurrency import gather
from gnothi.methods.steps.prompts import DESCRIBE, REVISE
from gnothi.methods.steps.settings import LIST_STOPS
from gnothi.protocols import KnowledgeGraph, LanguageModel
from gnothi.signals.names import runs_of_names
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Decoding, Passage, Prompt, Question

_IGNORANCE = re.compile(
    r"(?:(?:no|sorry) )?i (?:know nothing|have no|(?:dont|do not|cant|cannot) (?:know|have|recall|say|tell))\b"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """Something a question is about: its name as the question writes it, its node in the knowledge graph (empty: none), and
    whether the question itself names it or only a choice does."""

    name: str
    node: str = ""
    of_choice: bool = False


async def subjects(graph: KnowledgeGraph | None, question: Question) -> tuple[Subject, ...]:
    """The entities that a question and then its choices name, each once; without a graph what has a capital there, and where
    nothing has, the question itself."""
    if graph is None:
        return tuple(map(Subject, runs_of_names(question.text))) or (Subject(question.text),)
    texts = (question.text, *question.choices)
    linked = await gather(*(graph.link(text) for text in texts))
    by_node: dict[str, Subject] = {}
    for place, (text, mentions) in enumerate(zip(texts, linked, strict=True)):
        for mention in mentions:
            by_node.setdefault(mention.node, Subject(text[mention.start : mention.end], mention.node, place > 0))
    return tuple(by_node.values())


async def reflect(model: LanguageModel, about: Sequence[Subject], max_tokens: int) -> tuple[Passage, ...]:
    """What the model says about each subject, all asked at the same time: one passage each, titled with the subject's name.

    What it owns up to knowing nothing about is left out. Emits ``events.Reflected``."""
    names = tuple(dict.fromkeys(one.name for one in about))
    decoding = Decoding(max_tokens, stop=LIST_STOPS)
    replies = await gather(*(model.generate(Prompt(DESCRIBE, name), decoding) for name in names))
    descriptions = [(name, " ".join(reply.text.split())) for name, reply in zip(names, replies, strict=True)]
    known = tuple(Passage(f"memory:{name}", text, name) for name, text in descriptions if not admits_ignorance(text))
    events.emit(events.Reflected(tuple(descriptions), tuple(one.title for one in known)))
    return known


def about_question(internal: Sequence[Passage], about: Sequence[Subject]) -> tuple[Passage, ...]:
    """The internal knowledge about what the question itself names, without that about its choices."""
    named = {one.name for one in about if not one.of_choice}
    return tuple(one for one in internal if one.title in named)


def admits_ignorance(text: str) -> bool:
    """Whether a description holds no knowledge: blank, or it begins by saying that there is none."""
    return says_nothing(text) or bool(_IGNORANCE.match(normalized(text)))


def query(question: Question, internal: Sequence[Passage] = ()) -> str:
    """What external knowledge is looked for with, [q : IK] (section 4.2): the question and its choices in a line, then the
    internal knowledge, a line each, so that a re-ranker can shorten either."""
    line = " ".join(" ".join((question.text, " / ".join(question.choices))).split())
    return "\n".join((line, *(one.text for one in internal)))


DRAFT = "Draft"


async def revise(
    model: LanguageModel, question: Question, internal: Sequence[Passage], external: Sequence[Passage], max_tokens: int
) -> tuple[Passage, ...]:
    """The internal knowledge, rewritten as one passage where facts contradict it; unchanged where the model says nothing.

    Emits ``events.Revised``."""
    before = " ".join(one.text for one in internal)
    draft = Passage("memory", before, DRAFT)
    prompt = Prompt(REVISE, question.text, (draft, *external), question.choices)
    reply = await model.generate(prompt, Decoding(max_tokens * len(internal), stop=LIST_STOPS))
    after = " ".join(reply.text.split())
    if says_nothing(after):
        after = before
    events.emit(events.Revised(before, after))
    return tuple(internal) if after == before else (Passage("memory:revised", after),)
