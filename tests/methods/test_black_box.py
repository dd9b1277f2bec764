"""Methods on a model that gives text and nothing else: no log-probabilities, no hidden states, no scoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.filtering.complexity import Labelled, fit
from gnothi.filtering.knowledge import Neighbours
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Capabilities, ContinuationScore, Decoding, Passage, Prompt, Question, Samples, StateSpec
from tests.messages import refused

QUESTION = Question("q", "Where was the director of Velkarra born?")
FILM = Passage("film", "Velkarra was directed by Mira Tolven, born in Kestrel.", "Velkarra")
DISH = Passage("dish", "Velkarra is a dish of rice.", "Velkarra (dish)")
S1, S2 = "Velkarra was directed by Mira Tolven.", "Mira Tolven was born in Kestrel."
GUESSES = tuple(f"Velkarra was directed by {name}." for name in ("Ann Ox", "Bo Lund", "Cy Mott", "Di Orr"))

Table = Mapping[tuple[str, str], str | Sequence[str]]
TABLE: Table = {
    ("", ""): GUESSES,
    ("dish", ""): ("It is a dish.", "It is eaten.", "Rice is in it."),
    ("film", ""): f"{S1} {S2} So the answer is Kestrel.",
    ("", S1): f"{S2} So the answer is Kestrel.",
    ("", f"{S1} {S2}"): "So the answer is Kestrel.",
    ("", f"{S1} {S2} So the answer is"): "Kestrel.",
}


class BlackBox(Scripted):
    """``TABLE`` maps (passage ids, reply so far) to what samples say in turn. Asked for more than text, it fails the test."""

    def __init__(self) -> None:
        super().__init__(self._said, name="an-endpoint", capabilities=Capabilities())

    def _said(self, prompt: Prompt) -> list[str]:
        said = TABLE.get((" ".join(passage.id for passage in prompt.passages), prompt.answer_so_far), "unknown")
        return [said] if isinstance(said, str) else list(said)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        assert not hidden
        samples = await super().sample(prompt, n, decoding)
        assert samples.states == ()
        assert not any(generation.tokens for generation in samples.generations)
        return samples

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        raise AssertionError(f"asked to score {continuations} after {prompt.question!r}")


async def test_seakr_runs_on_consistency_from_the_first_draft_to_the_last_choice() -> None:
    """Disagreement opens the gate, agreement picks the passage and ranks the two answers."""
    model, retriever = BlackBox(), ScriptedRetriever([DISH, FILM])
    seakr = methods.create("seakr", {"model": model, "retriever": retriever}, {"signal": "consistency", "signal.samples": 8})
    with events.record() as recorded:
        answer = await seakr(QUESTION)
    assert (answer.text, answer.evidence, answer.uncertainty) == ("Kestrel", (FILM,), 0.0)
    decided = [event for event in recorded if isinstance(event, events.Decided)]
    assert [event.verdict for event in decided] == ["retrieve", "trust"]
    assert (decided[0].signal, decided[0].score, decided[0].threshold) == ("consistency", 0.75, 0.2)
    passages, answers = (event for event in recorded if isinstance(event, events.Ranked))
    assert [(label, score) for label, _, score in passages.candidates] == [("film", 0.0), ("dish", pytest.approx(5 / 8))]
    assert {label for label, _, _ in answers.candidates} == {"rationales", "knowledge"}
    assert retriever.queries == ["Velkarra"]  # without probabilities no word of the draft is certain: the question's remain


ABLATIONS: list[dict[str, Any]] = [
    {"always_retrieve": True},
    {"rerank": False},
    {"strategy": "rationales"},
    {"strategy": "knowledge"},
    {"rationale_score": "steps"},
    {"form": "simple"},
    {"form": "simple", "reason": False},
    {"query": "question"},
    {"threshold": 0.5},
    {"signal": "prompt"},
]


@pytest.mark.parametrize("settings", ABLATIONS, ids=lambda settings: "-".join(settings))
async def test_seakrs_ablations_need_no_more(settings: dict[str, Any]) -> None:
    resources = {"model": BlackBox(), "retriever": ScriptedRetriever([DISH, FILM])}
    answer = await methods.create("seakr", resources, {"signal": "consistency", **settings})(QUESTION)
    assert answer.text


@pytest.mark.parametrize("name", methods.names())
async def test_every_method_runs_on_text_or_says_what_it_lacks_and_what_would_do(name: str) -> None:
    resources: dict[str, object] = {"model": BlackBox(), "retriever": ScriptedRetriever([DISH, FILM])}
    if name == "skr":
        resources["reference"] = NothingKnown()
    if name == "adaptive_rag":
        resources["classifier"] = fit([Labelled("Where?", "once"), Labelled("Who?", "none")])
    settings: dict[str, object] = {}
    beside = {"skill_rag": "judge", "crag": "evaluator", "gkp": "reader", "searchain": "reader", "slimplm": "proxy"}
    instead: dict[str, dict[str, object]] = {"iekr": {"choose": "text"}, "refeed": {"ensemble": False}}
    if name in ("flare", "dragin", "self_rag"):  # made of probabilities or attentions
        with refused(MissingCapability):
            methods.create(name, resources, {})
        return
    if name in beside:
        with refused(MissingCapability):
            methods.create(name, resources, {})
        resources[beside[name]] = Scripted(lambda _: "unknown")
    elif name in instead:
        settings = instead[name]
        with refused(MissingCapability):
            methods.create(name, resources, {})
    elif methods.describe(name).needs != Capabilities():
        with refused(MissingCapability):
            methods.create(name, resources, {})
        settings = {"signal": "consistency"}
    await methods.create(name, resources, settings)(QUESTION)


class NothingKnown:
    """A knowledge reference all of whose questions needed passages."""

    async def neighbours(self, _: str, n: int) -> Neighbours:
        return Neighbours(0, n, (5, 5, 0))
