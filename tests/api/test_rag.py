"""``gnothi.open``: asked, awaited, streamed, closed; by names and by objects."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import gnothi
from gnothi.concurrency import Loop
from gnothi.errors import InvalidSetting
from gnothi.events import Decided, Event
from gnothi.methods.registry import METHODS
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Decoding, Passage, Prompt, Question
from tests.command_line import KNOWN, covered_fact, script
from tests.messages import refused


def model(name: str = "lab") -> Scripted:
    return Scripted(script, name=name)


def test_an_answer_with_all_that_was_decided() -> None:
    with gnothi.open("seakr", model=model()) as rag:
        known = rag.ask(KNOWN)
        assert known.text == "Ada Bram"
        assert known.uncertainty is not None
        assert [decision.verdict for decision in known.decisions] == ["trust"]
        assert (known.cost.retrievals, known.searches, known.evidence) == (0, (), ())
        subject, true, question = covered_fact()
        found = rag.ask(question)
        assert found.text == true
        assert found.evidence[0].title == subject
        assert found.cost.retrievals == len(found.searches) == 1
        assert found.as_dict()["answer"] == true


async def test_awaited_it_is_the_same() -> None:
    async with await gnothi.aopen("seakr", model=model()) as rag:
        both = await asyncio.gather(rag.aask(KNOWN), rag.aask(covered_fact()[2]))
    assert [one.text for one in both] == ["Ada Bram", covered_fact()[1]]


def test_events_as_they_happen_and_the_result_last() -> None:
    with gnothi.open("rag", model=model()) as rag:
        *events, result = rag.stream(covered_fact()[2])
        assert all(isinstance(event, Event) for event in events)
        assert isinstance(result, gnothi.Result)
        assert result.events == tuple(events)
        for event in rag.stream(KNOWN):
            assert isinstance(event, Event)
            break  # leaving early is no harm
        assert rag.ask(KNOWN).text == "Ada Bram"


async def test_events_for_async_for() -> None:
    async with await gnothi.aopen("seakr", model=model()) as rag:
        found = [one async for one in rag.astream(KNOWN)]
    assert isinstance(found[-1], gnothi.Result)
    assert sum(isinstance(one, Decided) for one in found) == 1


async def test_whether_it_knows_and_what_the_index_holds() -> None:
    async with await gnothi.aopen("seakr", model=model()) as rag:
        known, unknown = await asyncio.gather(rag.aknow(KNOWN), rag.aknow(covered_fact()[2]))
        assert (known.knows, known.draft, known.threshold) == (True, "Ada Bram", unknown.threshold)
        assert not unknown.knows
        found = await rag.asearch(covered_fact()[2], 2)
        assert [one.passage.title for one in found[:1]] == [covered_fact()[0]]
        assert len(found) == 2
        with refused(gnothi.errors.UsageError):
            rag.know(KNOWN)


def test_without_an_index_there_is_nothing_to_search() -> None:
    with (
        gnothi.open("direct", model=Scripted(script, name="another")) as rag,
        refused(InvalidSetting),
    ):
        rag.search("x", 1)


def test_many_threads_may_ask() -> None:
    with gnothi.open("seakr", model=model()) as rag, ThreadPoolExecutor(8) as pool:
        assert {one.text for one in pool.map(rag.ask, [KNOWN] * 40)} == {"Ada Bram"}


def test_objects_are_taken_wherever_a_name_is() -> None:
    passages = [Passage("p", "The known book is by Ada Bram.", "known book")]
    index = ScriptedRetriever(passages, name="mine")
    judge = model("judge")
    with gnothi.open("keqa", model=model("main"), index=index, judge=judge, decompose=False) as rag:
        assert rag.opened.retriever is not None
        assert rag.opened.retriever.name == "mine"
        rag.ask(KNOWN)
        method: Any = rag._method
        assert method.judge is judge
    assert rag.settings["judge"] == "judge"


@dataclass(frozen=True, slots=True)
class Letters:
    """Longer drafts are less certain."""

    name: ClassVar[str] = "letters_of_a_test"
    needs: ClassVar[Capabilities] = Capabilities()
    default_threshold: ClassVar[float | None] = 3.0

    async def measure(self, model: LanguageModel, prompt: Prompt, decoding: Decoding) -> Measured:
        greedy = await model.generate(prompt, decoding)
        return Measured(greedy, float(len(greedy.text)))


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What a test makes known is not known to the next."""
    yield
    METHODS.remove(Parrot.name)


@pytest.mark.usefixtures("forgotten")
def test_a_signal_of_ones_own() -> None:
    with gnothi.open("seakr", model=model(), signal=Letters()) as rag:
        (first, *_) = rag.ask(KNOWN).decisions
    assert (first.signal, first.threshold, first.verdict) == ("letters_of_a_test", 3.0, "retrieve")


@dataclass(frozen=True, slots=True)
class Parrot:
    """Says the question again."""

    model: LanguageModel
    name: ClassVar[str] = "parrot_of_a_test"

    @property
    def needs(self) -> Capabilities:
        return Capabilities()

    async def __call__(self, question: Question) -> Answer:
        return Answer(question.text)


@pytest.mark.usefixtures("forgotten")
def test_a_method_of_ones_own() -> None:
    with gnothi.open(Parrot, model=model()) as rag:
        assert (rag.method, rag.ask("Polly?").text) == ("parrot_of_a_test", "Polly?")


def test_a_choice_is_picked() -> None:
    with gnothi.open("direct", model=model()) as rag:
        assert rag.ask(KNOWN, choices=["Bo Crum", "Ada Bram"]).text == "Ada Bram"


def test_what_is_given_as_an_object_stays_open() -> None:
    closed: list[str] = []

    class Watched(Scripted):
        async def aclose(self) -> None:
            closed.append(self.name)

    with gnothi.open("direct", model=Watched(script, name="mine")) as rag:
        rag.ask(KNOWN)
    assert closed == []


def loops() -> list[threading.Thread]:
    """Threads of ours: others may come and go with other tests."""
    return [one for one in threading.enumerate() if one.name == "gnothi"]


@pytest.mark.usefixtures("swept")
def test_what_fails_to_open_leaves_no_thread() -> None:
    before = set(loops())
    with pytest.raises(InvalidSetting):
        gnothi.open("rag", model=model("no-index"))
    gc.collect()
    assert set(loops()) <= before


@pytest.mark.usefixtures("swept")
def test_a_loop_ends_with_its_last_reference() -> None:
    before = set(loops())
    loop = Loop()
    (begun,) = set(loops()) - before
    del loop
    gc.collect()
    assert not begun.is_alive()


def test_closing_twice_does_no_harm_and_settings_are_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("signal.samples = 3\n[seakr]\nthreshold = -2.5\n")
    rag = gnothi.open("seakr", model=model(), config=tmp_path / "mine.toml", signal={"top_k": 7})
    assert (rag.settings["signal.samples"], rag.settings["threshold"], rag.settings["signal.top_k"]) == (3, -2.5, 7)
    rag.close()
    rag.close()
    assert "closed" in repr(rag)


def test_the_public_names_are_there() -> None:
    for name in gnothi.__all__:
        assert getattr(gnothi, name) is not None
    assert dir(gnothi) == sorted(gnothi.__all__)


def test_several_seeds_are_several_samples() -> None:
    def draws(seed: int) -> Sequence[float | None]:
        with gnothi.open("seakr", model=model(), seed=seed) as rag:
            return [decision.score for decision in rag.ask(covered_fact()[2]).decisions]

    assert draws(0) == draws(0) != draws(1)


def test_results_show_as_tables() -> None:
    with gnothi.open("seakr", model=model(), index=ScriptedRetriever([Passage("p", "It was Ada Bram.")])) as rag:
        found, knowledge = rag.ask("Who <b> wrote it?"), rag.know("Who <b> wrote it?")
    for one in (found, knowledge):
        assert len(repr(one)) < 400
        assert "Who &lt;b&gt; wrote it?" in one._repr_html_()
    assert found.text in found.answer._repr_html_()
