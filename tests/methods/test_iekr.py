"""What makes IEKR: what the model says about the entities finds the facts, and both are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting, MissingCapability
from gnothi.methods.iekr import IEKR
from gnothi.retrieval.wrappers import TracedGraph
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ListedGraph, ScriptedRetriever
from gnothi.types import Capabilities, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Which would let the most heat through?", ("a steel spoon",), ("new jeans", "a steel spoon"))
TRIPLES = [
    ("steel", "is a", "metal"),
    ("steel", "is related to", "heavy"),
    ("heat", "has the property", "warm"),
    ("metal", "is a", "thermal conductor"),
    ("jeans", "are made of", "cotton"),
    ("cotton", "grows in", "fields"),
]
KNOWN = {"heat": "Heat travels through a thermal conductor.", "steel": "Steel is a metal.", "jeans": "unknown"}


def script(prompt: Prompt) -> str:
    if prompt.task.name == "describe":
        return KNOWN[prompt.question]
    if prompt.task.name == "revise":
        return "Steel is a metal, and metals conduct heat."
    return "So the answer is a steel spoon." if prompt.passages else "So the answer is new jeans."


class Words:
    """Scores a fact by the words it shares with the query; keeps the queries."""

    name = "words"

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.asked.append((query, tuple(texts)))
        words = set(query.lower().replace(".", "").split())
        return tuple(float(len(words & set(text.lower().replace(".", "").split()))) for text in texts)

    async def aclose(self) -> None:
        return None


def make(model: Scripted | None = None, graph: Any = None, **settings: Any) -> tuple[Any, Scripted, Words]:
    model, reranker = model or Scripted(script), Words()
    resources = {"model": model, "graph": graph or ListedGraph(TRIPLES), "reranker": reranker}
    return methods.create("iekr", resources, {"choose": "text", "show": "facts", **settings}), model, reranker


def told(passages: Sequence[Passage]) -> list[str]:
    return [passage.text for passage in passages]


async def test_internal_knowledge_finds_the_fact_that_the_question_alone_does_not() -> None:
    """The example of the paper's figure 1."""
    method, model, reranker = make(m=2)
    answer = await method(QUESTION)
    ((query, candidates),) = reranker.asked
    assert query == (
        "Which would let the most heat through? new jeans / a steel spoon\nHeat travels through a thermal conductor.\n"
        "Steel is a metal."
    )
    assert len(candidates) == len(TRIPLES)
    needed = "metal is a thermal conductor."
    assert told(answer.evidence) == [KNOWN["heat"], KNOWN["steel"], needed, "steel is a metal."]
    assert answer.text == "a steel spoon"
    assert model.prompts[-1].passages == answer.evidence
    assert model.prompts[-1].choices == QUESTION.choices
    # The question alone ranks the needed fact behind others.
    without, _, _ = make(m=2, internal=False)
    assert needed not in told((await without(QUESTION)).evidence)


async def test_each_entity_is_asked_about_once_and_only_once() -> None:
    method, model, _ = make()
    await method(QUESTION)
    assert [one.question for one in model.prompts if one.task.name == "describe"] == ["heat", "jeans", "steel"]


@pytest.mark.parametrize(("read", "expected"), [("all", ["heat", "steel"]), ("question", ["heat"]), ("none", [])])
async def test_what_is_searched_with_need_not_be_read(read: str, expected: list[str]) -> None:
    method, _, reranker = make(read_internal=read, m=1)
    answer = await method(QUESTION)
    assert told(answer.evidence)[:-1] == [KNOWN[name] for name in expected]
    assert reranker.asked[0][0].endswith(f"{KNOWN['heat']}\n{KNOWN['steel']}")


@pytest.mark.parametrize(
    ("settings", "internal", "external"),
    [({}, True, True), ({"internal": False}, False, True), ({"external": False}, True, False)],
)
async def test_ablations(settings: dict[str, Any], internal: bool, external: bool) -> None:
    method, _, reranker = make(**settings)
    read = told((await method(QUESTION)).evidence)
    assert (KNOWN["steel"] in read) is internal
    assert ("steel is a metal." in read) is external
    assert len(reranker.asked) == external


async def test_both_off_is_the_backbone() -> None:
    graph = ListedGraph(TRIPLES)
    method, model, _ = make(graph=graph, internal=False, external=False)
    answer = await method(QUESTION)
    assert (answer.text, answer.evidence) == ("new jeans", ())
    assert len(model.prompts) == 1
    assert graph.texts == []


async def test_hubs_candidates_and_hops_are_bounded() -> None:
    method, _, reranker = make(hops=1, cap=1, candidates=3)
    await method(QUESTION)
    near = ["heat has the property warm.", "jeans are made of cotton.", "steel is a metal."]
    assert sorted(reranker.asked[0][1]) == near
    method, _, reranker = make(candidates=2)
    await method(QUESTION)
    assert len(reranker.asked[0][1]) == 2


async def test_the_verifier_sees_both_and_its_revision_is_read() -> None:
    verifier = Scripted(script)
    resources = {"model": Scripted(script), "graph": ListedGraph(TRIPLES), "verifier": verifier}
    method = methods.create("iekr", resources, {"choose": "text", "show": "facts", "verify": True, "m": 1})
    with events.record() as happened:
        answer = await method(QUESTION)
    (prompt,) = verifier.prompts
    assert prompt.task.name == "revise"
    draft, *facts = prompt.passages
    assert draft.text == f"{KNOWN['heat']} {KNOWN['steel']}"
    assert told(answer.evidence) == ["Steel is a metal, and metals conduct heat.", *told(facts)]
    (revised,) = (event for event in happened if isinstance(event, events.Revised))
    assert (revised.before, revised.after) == (draft.text, answer.evidence[0].text)


async def test_a_verifier_that_says_nothing_changes_nothing() -> None:
    method, _, _ = make(Scripted(lambda prompt: "unknown" if prompt.task.name == "revise" else script(prompt)), verify=True)
    assert told((await method(QUESTION)).evidence)[:2] == [KNOWN["heat"], KNOWN["steel"]]


async def test_a_reader_of_its_own_answers_and_only_answers() -> None:
    reader = Scripted(lambda _: "So the answer is new jeans.", capabilities=Capabilities())
    resources = {"model": Scripted(script), "graph": ListedGraph(TRIPLES), "reader": reader}
    assert (await methods.create("iekr", resources, {"choose": "text"})(QUESTION)).text == "new jeans"
    assert {prompt.task.name for prompt in reader.prompts} == {"reason"}
    with refused(MissingCapability):
        methods.create("iekr", resources, {})


async def test_of_the_choices_the_likeliest_is_taken() -> None:
    model = Scripted(script, scorer=lambda _, text: -1.0 if text == "a steel spoon" else -2.0)
    method, _, _ = make(model, choose="likelihood", reason=False)
    answer = await method(QUESTION)
    assert answer.text == "a steel spoon"
    assert 0 < answer.uncertainty < 0.5
    assert model.prompts[-1].choices == QUESTION.choices
    hidden, _, _ = make(model, choose="likelihood", reason=False, show_choices=False)
    assert (await hidden(QUESTION)).text == "a steel spoon"
    assert model.prompts[-1].choices == ()
    assert await hidden.prompt(QUESTION) == await method.prompt(QUESTION)


async def test_what_a_reader_is_trained_on_is_what_it_is_asked() -> None:
    method, model, _ = make(reason=False)
    prompt = await method.prompt(QUESTION)
    await method(QUESTION)
    assert model.prompts[-1] == prompt


async def test_passages_take_the_facts_place() -> None:
    found = [Passage(f"p{number}", f"Text {number}.") for number in range(5)]
    retriever, model = ScriptedRetriever(found), Scripted(lambda p: "It is steel." if p.task.name == "describe" else "unknown")
    open_question = Question("q", "What conducts heat?")
    method = methods.create("iekr", {"model": model, "retriever": retriever}, {"choose": "text", "k": 2})
    answer = await method(open_question)
    assert retriever.queries == ["What conducts heat? It is steel."]
    assert told(answer.evidence) == ["It is steel.", "Text 0.", "Text 1."]
    # With a graph for the entities and a re-ranker for the order.
    resources = {"model": Scripted(script), "retriever": retriever, "graph": ListedGraph(TRIPLES), "reranker": Last()}
    method = methods.create("iekr", resources, {"choose": "text", "k": 2, "source": "passages", "candidates": 4})
    answer = await method(open_question)
    assert told(answer.evidence) == [KNOWN["heat"], "Text 3.", "Text 2."]


class Last(Words):
    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:  # noqa: ARG002
        return tuple(map(float, range(len(texts))))


async def test_what_the_model_knows_need_not_be_looked_up() -> None:
    """Beyond the paper: a gate before it."""
    for doubt, looked_up in ((0.01, False), (3.0, True)):
        model = Scripted(lambda p, doubt=doubt: Reply(script(p), (-doubt,)))  # type: ignore[misc]
        graph = ListedGraph(TRIPLES)
        method, _, _ = make(model, graph, gate="perplexity", gate_threshold=1.5)
        answer = await method(QUESTION)
        assert bool(graph.texts) is looked_up
        assert bool(answer.evidence) is looked_up
    with refused(InvalidSetting):
        make(gate="energy")


async def test_events() -> None:
    method, _, _ = make(graph=TracedGraph(ListedGraph(TRIPLES)))
    with events.record() as happened:
        await method(QUESTION)
    kinds = [type(event).__name__ for event in happened]
    assert kinds.count("Linked") == 3  # the question and two choices
    assert kinds.count("Reflected") == kinds.count("Expanded") == 1
    assert events.Usage.of(happened).retrievals == 1


def test_what_is_refused() -> None:
    model = {"model": Scripted(script)}
    with refused(InvalidSetting):
        methods.create("iekr", model, {})
    with refused(InvalidSetting):
        methods.create("iekr", {**model, "graph": ListedGraph([])}, {"source": "passages"})
    assert isinstance(methods.create("iekr", model, {"external": False}), IEKR)
    blind = Scripted(script, name="blind", capabilities=Capabilities())
    with refused(MissingCapability):
        methods.create("iekr", {"model": blind, "graph": ListedGraph([])}, {})
