"""IEKR: internal and external knowledge, each of use to the other (Du and Zhao 2024, arXiv 2408.12979).

What the model says about the question's entities (section 4.1) helps to find facts in a knowledge graph (4.2); a reader answers
from both (4.3). Without a graph, passages of an index take the facts' place (6.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.fields import resource, setting
from gnothi.filtering.utility import best
from gnothi.methods.steps.from_memory import GatedSettings
from gnothi.methods.steps.gating import GateSpec
from gnothi.methods.steps.multiple_choice import WithoutChoices
from gnothi.methods.steps.prompts import require_text
from gnothi.methods.steps.reflection import Subject, about_question, query, reflect, revise, subjects
from gnothi.methods.steps.requirements import require
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import ModelDefaults, needs_of
from gnothi.models.scheme import LAB, LAB_READER
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.types import Answer, Capabilities, Fact, Passage, Prompt, Question

Showing = Literal["subjects", "facts", "one"]


async def candidates(graph: KnowledgeGraph, about: Sequence[Subject], hops: int, cap: int, most: int) -> tuple[Fact, ...]:
    """Facts within ``hops`` steps of the subjects, ``cap`` of each node, ``most`` in all, nearer ones first. Where there are
    more, each subject keeps its share of them, its nearer ones."""
    nodes = [one.node for one in about if one.node]
    if not nodes:
        return ()
    facts = (await graph.neighbourhood(nodes, hops, cap)).facts
    if len(facts) <= most:
        return facts
    around = await gather(*(graph.neighbourhood([node], hops, cap) for node in nodes))
    selected = in_turn([one.facts for one in around], most)
    return tuple(fact for fact in facts if fact in selected)


def in_turn(lists: Sequence[Sequence[Fact]], most: int) -> set[Fact]:
    """``most`` facts, of each list the next one in turn that no other has given."""
    selected: set[Fact] = set()
    iterators = [iter(iterator) for iterator in lists]
    while iterators:
        for iterator in tuple(iterators):
            if len(selected) == most:
                return selected
            fact = next((fact for fact in iterator if fact not in selected), None)
            if fact is None:
                iterators.remove(iterator)
            else:
                selected.add(fact)
    return selected


def as_passages(facts: Sequence[Fact], showing: Showing) -> tuple[Passage, ...]:
    """The facts as a reader sees them, best first: ``facts`` one passage each; ``subjects`` one for each subject, titled with
    it and in the order of its best fact; ``one`` all in one, as in the paper (equation 5)."""
    if showing == "facts":
        return tuple(fact.passage for fact in facts)
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.head if showing == "subjects" else "", []).append(fact)
    return tuple(
        Passage(" ".join(fact.passage.id for fact in group), " ".join(fact.text for fact in group), title)
        for title, group in groups.items()
    )


@dataclass(frozen=True, slots=True)
class IEKR(GatedSettings):
    """Asks the model what it knows about the question's entities, finds facts with that, and answers from both."""

    model: LanguageModel
    graph: KnowledgeGraph | None = resource("Facts, and the names that questions are searched for.")
    retriever: Retriever | None = resource("Passages, read where there is no graph.")
    reranker: Reranker | None = resource("Scores [question : internal knowledge : fact]; without one, shared words count.")
    reader: LanguageModel | None = resource("Model that answers, perhaps one trained by gnothi train reader (lab: lab-reader).")
    verifier: LanguageModel | None = resource("Model that revises internal knowledge (verify=true).")
    internal: bool = setting(True, "Reflect; false (ablation): internal knowledge is neither searched with nor read.")
    read_internal: Literal["all", "question", "none"] = setting(
        "all",
        "Internal knowledge that is read: all, that about the question's entities, none; it is searched with all the same.",
    )
    external: bool = setting(True, "Look for facts; false (ablation): only internal knowledge is read.")
    source: Literal["graph", "passages"] | None = setting(
        None, "Where external knowledge comes from (none: the graph where there is one, else passages)."
    )
    hops: int = setting(2, "Candidate facts lie at most so many steps from the question's entities.", at_least=1)
    cap: int = setting(100, "Candidate facts of one entity; of a hub, only so many.", at_least=1)
    candidates: int = setting(1000, "Candidate facts, or passages for a re-ranker, of one question.", at_least=1)
    m: int = setting(50, "Facts that are read, the best of all candidates.", at_least=1)
    k: int = setting(3, "Passages that are read, where they take the facts' place.", at_least=1)
    show: Showing = setting("subjects", "Facts are read one passage a subject, one passage each, or all in one.")
    verify: bool = setting(False, "Have internal knowledge revised in the light of the external before both are read.")
    show_choices: bool = setting(
        True, "Show the reader the choices; false: it answers as if there were none, then one is chosen."
    )
    _: KW_ONLY
    choose: Literal["text", "likelihood"] = setting(
        "likelihood", "Multiple choice: take the choice that the reply names, or the one that is likeliest as the reply."
    )

    name: ClassVar[str] = "iekr"
    usual_tokens: ClassVar[int] = 12_000
    # The reader that `gnothi train reader` made (docs/results/iekr.md) was taught to answer at once; a gate has thresholds that
    # were chosen for the model itself.
    defaults_for: ClassVar[ModelDefaults] = ModelDefaults(LAB, {"reader": LAB_READER, "reason": False}, ("gate",))
    gating: ClassVar[GateSpec] = GateSpec("gate", "gate_threshold", "reader")

    @property
    def needs(self) -> Capabilities:
        return self._reader_needs if self.reader is None else Capabilities()

    @property
    def _reader_needs(self) -> Capabilities:
        return self.answering_needs | needs_of(self.gate)

    def check_resources(self) -> None:
        """Raise InvalidSetting where external knowledge has no source or the gate no threshold, MissingCapability for a reader
        that cannot choose."""
        self.check_gate((self.reader or self.model).profile.thresholds)
        sources = {"graph": self.graph, "passages": self.retriever}
        source = sources[self.source] if self.source else self.graph or self.retriever
        if self.external and source is None:
            what = {"graph": "a graph", "passages": "an index", None: "a graph or an index"}[self.source]
            flag = "<--index PATH>" if self.source == "passages" else "<--graph PATH>"
            raise InvalidSetting(
                f"method 'iekr' looks for facts and got no source of them: expected {what}. Give one with {flag}, or leave "
                "external knowledge out with <--set external=false>."
            )
        require(self.name, "reader", self.reader, self._reader_needs)

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        reader = self.reader or self.model
        if not self.show_choices:
            reader = WithoutChoices(reader)
        known = await self.from_memory(reader, question)
        return known or await self.reply(reader, await self.prompt(question))

    async def prompt(self, question: Question) -> Prompt:
        """What the reader is asked: the question, behind internal and external knowledge."""
        require_text(question)
        about = await subjects(self.graph, question) if self.internal or self.external else ()
        internal = await reflect(self.model, about, self.max_tokens) if self.internal else ()
        external = await self._look_up(question, about, internal) if self.external else ()
        if self.read_internal != "all":
            internal = about_question(internal, about) if self.read_internal == "question" else ()
        if self.verify and internal and external:
            internal = await revise(self.verifier or self.model, question, internal, external, self.max_tokens)
        return self.reading(question, (*internal, *external))

    async def _look_up(self, question: Question, about: Sequence[Subject], internal: Sequence[Passage]) -> tuple[Passage, ...]:
        """The facts, or passages, that fit [question : internal knowledge] best."""
        query_text = query(question, internal)
        if self.graph is not None and self.source != "passages":
            facts = await candidates(self.graph, about, self.hops, self.cap, self.candidates)
            places = await best(self.reranker, query_text, [fact.text for fact in facts], self.m)
            return as_passages([facts[place] for place in places], self.show)
        if self.retriever is None:
            return ()
        passages = await search(self.retriever, " ".join(query_text.split()), self.candidates if self.reranker else self.k)
        if self.reranker is None:
            return passages
        return tuple(passages[place] for place in await best(self.reranker, query_text, [one.text for one in passages], self.k))
