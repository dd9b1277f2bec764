"""What every Method must do. Subclass ``MethodConformance`` in a test file and set ``name``, or ``method`` for one that is not
installed (and ``settings``).

The suite brings a little world: films, their directors and the towns these were born in. Its model knows nothing by heart
and says so, reads what passages say, reasons in sentences, splits questions and judges; its retriever compares words.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from gnothi import config, events, methods
from gnothi.errors import InvalidInput, MissingCapability
from gnothi.methods.registry import METHODS
from gnothi.methods.steps.self_rag_tokens import SUPPORTS
from gnothi.protocols import Count, Method
from gnothi.retrieval.filters import Filters
from gnothi.testing.model import Reply, Scripted
from gnothi.types import (
    Answer,
    Capabilities,
    ContinuationScore,
    Decoding,
    Generation,
    Passage,
    Prompt,
    Question,
    Samples,
    ScoredPassage,
    StateSpec,
)

FILMS = 8
PEOPLE = tuple(f"Mira{number} Tolven" for number in range(FILMS))
TOWNS = tuple(f"Kestrel{number}" for number in range(FILMS))
PASSAGES = (
    *(Passage(f"film{n}", f"The film Velkarra{n} was directed by {PEOPLE[n]}.", f"Velkarra{n}") for n in range(FILMS)),
    *(Passage(f"person{n}", f"{PEOPLE[n]} was born in {TOWNS[n]}.", PEOPLE[n]) for n in range(FILMS)),
    *(Passage(f"other{n}", f"Velkarra{n} is also the name of a dish of {PEOPLE[n]}.") for n in range(FILMS)),
)
QUESTIONS = tuple(Question(f"q{n}", f"Where was the director of the film Velkarra{n} born?", (TOWNS[n],)) for n in range(FILMS))
CONCLUSION = "So the answer is"


def reader(prompt: Prompt) -> list[Reply]:
    """The world's model: right where the passages or the chain so far hold the fact; where they do not, its samples differ."""
    if prompt.task.name == "describe":
        return [Reply("I know nothing about it.")]
    reply = _greedy(prompt)
    if reply.doubt and prompt.question.startswith("Tell me"):  # unsure, it says something else when asked in other words
        reply = replace(reply, text=reply.text.replace("Nowhere", "Anywhere"))
    if not reply.doubt:
        return [reply]
    return [reply, *(replace(reply, text=re.sub("Nobody|Nowhere", f"Perhaps{n}", reply.text)) for n in range(4))]


def _greedy(prompt: Prompt) -> Reply:
    if prompt.task.name in ("decompose", "equivalent", "useful"):
        return _judged(prompt)
    if prompt.task.name == "rephrase":
        return Reply(f"1. {prompt.question}\n2. Tell me: {prompt.question}")
    if prompt.task.name == "self_rag":
        return _reflecting(prompt)
    if prompt.task.name == "react":
        return _acting(prompt)
    if prompt.task.name in ("search_r1", "r1_searcher"):
        return _tagging(prompt)
    if prompt.task.name == "ask_for":
        last = re.split(r"(?<=[.?]) ", prompt.question)[-2]
        return Reply(last.replace("Nobody Atall", "").replace("Nowhere", ""))
    match = re.search(r"Velkarra(\d+)", prompt.question)
    if not match or prompt.question.startswith("Who"):
        return _simple(prompt)
    number = int(match.group(1))
    read = " ".join(passage.text for passage in prompt.passages) + " " + prompt.answer_so_far
    knows_director = f"directed by {PEOPLE[number]}" in read or f"Velkarra{number}? {PEOPLE[number]}" in read
    knows_town = any(f"{PEOPLE[number]} {fact} {TOWNS[number]}" in read for fact in ("was born in", "born?"))
    if prompt.task.name == "know":
        return Reply("Yes, I know." if knows_director and knows_town else "No, I don't know.")
    if prompt.task.name == "answer":
        return Reply(TOWNS[number], (-0.01,)) if knows_director and knows_town else Reply("Nowhere", (-3.0,), doubt=1.0)
    person = PEOPLE[number] if knows_director else "Nobody Atall"
    town = TOWNS[number] if knows_director and knows_town else "Nowhere"
    chain = [
        (f"The film Velkarra{number} was directed by {person}.", knows_director),
        (f"{person} was born in {town}.", knows_town),
        (f"{CONCLUSION} {town}.", True),
    ]
    if prompt.answer_so_far.endswith(CONCLUSION):
        return Reply(f" {town}.", (-0.01,))
    rest = chain[len(re.findall(r"\.", prompt.answer_so_far)) :]
    if not rest:
        return Reply("")
    text, sure = " ".join(sentence for sentence, _ in rest), rest[0][1]
    begun = prompt.answer_so_far.split(". ")[-1]
    if begun and text.startswith(begun):  # in the middle of a sentence
        text = text[len(begun) :]
    words = rest[0][0].split()
    return Reply(
        text,
        tuple(-0.01 if sure or word not in (*person.split(), f"{town}.") else -3.0 for word in words),
        0.0 if sure else 1.0,
    )


def _reflecting(prompt: Prompt) -> Reply:
    """What a model that writes reflection tokens writes next: it reads the last paragraph and remembers its own sentences."""
    match = re.search(r"Velkarra(\d+)", prompt.question)
    assert match
    number, so_far = int(match.group(1)), prompt.answer_so_far
    *sentences, last = re.split(r"(?<=</paragraph>)|(?<=\[No Retrieval\])", so_far) if so_far else [""]
    own = " ".join(re.sub(r"(?s)<paragraph>.*?</paragraph>", "", one) for one in sentences)
    read = re.findall(r"<paragraph>(.*?)</paragraph>", so_far.replace("\n", " "))[-1:]
    film, person = (
        f"The film Velkarra{number} was directed by {PEOPLE[number]}.",
        f"{PEOPLE[number]} was born in {TOWNS[number]}.",
    )
    useful = [one for one in (film, person) if read and one in read[0] and (one == film or film in own) and one not in own]
    if not so_far:
        return Reply("[Retrieval]")
    if so_far.endswith("</paragraph>"):
        return Reply("[Relevant]" if useful else "[Irrelevant]")
    if last in ("", "[Relevant]", "[Irrelevant]"):
        if useful and useful[0] == film:
            return Reply(f"{film}[Fully supported]")
        town = TOWNS[number] if useful else "Nowhere"
        return Reply(f"{useful[0] if useful else 'Nothing is told.'} {CONCLUSION} {town}.", (-0.01,) if useful else (-3.0,))
    if last.endswith("."):
        return Reply("[Fully supported]" if useful else "[Utility:1]" if sentences[-1].endswith("]") else SUPPORTS[2])
    return Reply("[Retrieval]" if film in last else "[Utility:5]" if "[Fully" in last else "[Utility:1]")


def _acting(prompt: Prompt) -> Reply:
    """The next thought and action towards the town, by the pages of the film and of its director."""
    match = re.search(r"Velkarra(\d+)", prompt.question)
    assert match
    number, read = int(match.group(1)), prompt.answer_so_far
    knows_director, knows_town = f"directed by {PEOPLE[number]}" in read, f"{PEOPLE[number]} was born in" in read
    town = TOWNS[number] if knows_director and knows_town else "Nowhere"
    if read.endswith("finish["):
        return Reply(town)
    searches = read.count(": search[")
    name = PEOPLE[number] if knows_director else match.group()
    if knows_town or searches > 1 or (searches and not knows_director):
        return Reply(f" That is all.\nAction {searches + 1}: finish[{town}]\nObservation")
    return Reply(f" The page of {name} may tell.\nAction {searches + 1}: search[{name}]\nObservation")


def _tagging(prompt: Prompt) -> Reply:
    """The next turn of a model that thinks, searches and answers by tags."""
    match = re.search(r"Velkarra(\d+)", prompt.question)
    assert match
    number, read = int(match.group(1)), prompt.answer_so_far
    knows_director, knows_town = f"directed by {PEOPLE[number]}" in read, f"{PEOPLE[number]} was born in" in read
    name = PEOPLE[number] if knows_director else match.group()
    if knows_town or f" {name} " in read.replace(f"({name})", ""):
        return Reply(f"<think>That is all.</think>\n<answer> {TOWNS[number] if knows_town else 'Nowhere'} </answer>")
    opening, closing = (
        ("<search>", "</search>") if prompt.task.name == "search_r1" else ("<|begin_of_query|>", "<|end_of_query|>")
    )
    return Reply(f"<think>The page of {name} may tell.</think>\n{opening} {name} {closing}")


def _judged(prompt: Prompt) -> Reply:
    """A question split into two; whether a passage is of use; whether answers are the same, letter by letter."""
    name, town = re.search(r"Velkarra\d+", prompt.question), re.search(r"Where was (.+) born", prompt.question)
    if prompt.task.name == "decompose":
        assert name
        return Reply(f"1. Who directed the film {name.group()}?\n2. Where was #1 born?")
    if prompt.task.name == "equivalent":
        return Reply("Yes" if len(set(prompt.choices)) == 1 else "No")
    statement = f"{name.group()} was directed" if name else f"{town.group(1)} was born" if town else ""
    return Reply("Yes" if statement and statement in prompt.passages[0].text else "No")


def _simple(prompt: Prompt) -> Reply:
    """The parts of the world's questions: who directed a film, where a person was born."""
    read = " ".join(passage.text for passage in prompt.passages)
    match = re.search(r"[^.]*(?:directed by (\w+ \w+)|was born in (\w+))", read)
    answer = next(part for part in match.groups() if part) if match else "Nobody" if "Who" in prompt.question else "Nowhere"
    if prompt.task.name == "answer":
        return Reply(answer, doubt=0.0 if match else 1.0)
    return Reply(f"{match.group() if match else 'It is not told'}. {CONCLUSION} {answer}.")


class WordRetriever:
    """Ranks the world's passages by the number of words they share with the query."""

    name = "words"

    def __init__(self, passages: Sequence[Passage] = PASSAGES) -> None:
        self.passages = passages
        self.queries: list[str] = []

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        await asyncio.sleep(0)
        self.queries.append(query)
        words = set(re.findall(r"\w+", query))
        scored = [
            ScoredPassage(one, float(len(words & set(re.findall(r"\w+", one.title + " " + one.text))))) for one in self.passages
        ]
        ranked = sorted((one for one in scored if one.score), key=lambda one: (-one.score, one.passage.id))
        return tuple(ranked[:k])

    def counter(self, filters: Filters = ()) -> Count:
        """How many of the passages hold phrases; nobody filters them."""
        assert not filters

        async def count(phrases: Sequence[str]) -> int:
            return sum(all(one in f"{passage.title} {passage.text}" for one in phrases) for passage in self.passages)

        return count

    async def aclose(self) -> None:
        return None


class Slow(Scripted):
    """Gives way before it replies, so that concurrent questions interleave."""

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await asyncio.sleep(0)
        return await super().generate(prompt, decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        await asyncio.sleep(0.001)
        return await super().sample(prompt, n, decoding, hidden)


class Hanging(Scripted):
    """Never replies; counts who waits."""

    waiting = 0

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        del prompt, decoding
        Hanging.waiting += 1
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            Hanging.waiting -= 1

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        del n, hidden
        return Samples((await self.generate(prompt, decoding),))

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        del continuations
        await self.generate(prompt, Decoding())
        return ()


class MethodConformance:
    """``knows``: whether the method finds the world's answers (a method without retrieval cannot). ``silence``: what it
    answers where the model says nothing. ``choosing``: tasks whose prompts about the question show its choices."""

    name: ClassVar[str]
    method: ClassVar[Any] = None
    settings: ClassVar[Mapping[str, object]] = {}
    knows: ClassVar[bool] = True
    silence: ClassVar[str] = ""
    choosing: ClassVar[tuple[str, ...]] = ("reason", "answer", "know")

    @pytest.fixture(autouse=True)
    def known(self) -> Iterator[None]:
        """One that is not installed is known by its name for as long as a test runs."""
        if self.method is not None:
            type(self).name = methods.spec(self.method).name
        yield
        if self.method is not None:
            METHODS.remove(self.name)

    def resources(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> dict[str, object]:
        return {"model": model or Scripted(reader), "retriever": retriever or WordRetriever()}

    def make(self, model: Scripted | None = None, retriever: WordRetriever | None = None) -> Method:
        return methods.create(self.name, self.resources(model, retriever), self.settings)

    @pytest.fixture
    def swept(self) -> Iterator[None]:
        """What the test leaves is collected at its end, when a coroutine that was never awaited warns; nothing older is looked
        at, then or later, for that takes half a second among all the modules that tests import."""
        gc.freeze()
        yield
        gc.collect()

    def test_is_a_frozen_dataclass_that_describes_itself(self) -> None:
        method = self.make()
        assert isinstance(method, Method)
        assert method.name == self.name
        assert isinstance(method.needs, Capabilities)
        data: Any = method
        assert dataclasses.is_dataclass(method)
        with pytest.raises(dataclasses.FrozenInstanceError):
            data.model = None
        description = methods.describe(self.name)
        assert description.summary
        assert description.source
        assert all(setting.help for setting in description.settings), "a setting without help"
        assert next(iter(description.resources)) == "model"

    def test_its_settings_survive_being_written_and_read(self) -> None:
        method = self.make()
        texts = {key: config.as_text(value) for key, value in config.resolved(method).items()}
        again = methods.create(self.name, self.resources(), texts)
        assert config.resolved(again) == config.resolved(method)

    async def test_answers(self) -> None:
        for question in QUESTIONS[:3]:
            answer = await self.make()(question)
            assert isinstance(answer, Answer)
            assert (answer.text in question.answers) is self.knows
            assert answer.uncertainty is None or answer.uncertainty == answer.uncertainty

    async def test_the_same_question_twice_gives_the_same_answer(self) -> None:
        assert await self.make()(QUESTIONS[0]) == await self.make()(QUESTIONS[0])

    async def test_concurrent_questions_equal_sequential_ones(self) -> None:
        method = self.make(Slow(reader))
        sequential = [await method(question) for question in QUESTIONS]
        concurrent = await asyncio.gather(*(method(question) for question in QUESTIONS))
        assert list(concurrent) == sequential

    async def test_events_of_concurrent_questions_do_not_mix(self) -> None:
        method = self.make(Slow(reader))

        async def recorded(question: Question) -> list[events.Event]:
            with events.record() as happened:
                await method(question)
            return happened

        alone = [await recorded(question) for question in QUESTIONS]
        together = await asyncio.gather(*(recorded(question) for question in QUESTIONS))
        assert list(together) == alone

    @pytest.mark.usefixtures("swept")
    async def test_cancelling_leaves_nothing_behind(self) -> None:
        tasks = asyncio.all_tasks()
        task = asyncio.ensure_future(self.make(Hanging(reader))(QUESTIONS[0]))
        for _ in range(100):
            await asyncio.sleep(0)
        assert Hanging.waiting
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert Hanging.waiting == 0
        assert asyncio.all_tasks() == tasks

    @pytest.mark.usefixtures("swept")
    @pytest.mark.parametrize("when", range(6))
    async def test_cancelling_at_any_moment(self, when: int) -> None:
        task = asyncio.ensure_future(self.make(Slow(reader))(QUESTIONS[0]))
        for _ in range(when):
            await asyncio.sleep(0)
        finished = not task.cancel()
        with contextlib.nullcontext() if finished else pytest.raises(asyncio.CancelledError):
            await task

    @pytest.mark.parametrize("text", ["", "  \n"])
    async def test_an_empty_question_is_refused_before_any_call(self, text: str) -> None:
        model, retriever = Scripted(reader), WordRetriever()
        with pytest.raises(InvalidInput, match="q-empty"):
            await self.make(model, retriever)(Question("q-empty", text))
        assert not model.prompts
        assert not retriever.queries

    async def test_nothing_retrieved_still_gives_an_answer(self) -> None:
        answer = await self.make(retriever=WordRetriever(()))(QUESTIONS[0])
        assert answer.text == "Nowhere"
        assert answer.evidence == ()

    @pytest.mark.parametrize("text", ["", "   ", "\n"])
    async def test_a_model_that_says_nothing_gives_an_empty_answer(self, text: str) -> None:
        answer = await self.make(Scripted(lambda _: text))(QUESTIONS[0])
        assert answer.text == self.silence

    async def test_a_model_that_never_concludes_is_stopped(self) -> None:
        counter = iter(range(10**6))
        model = Scripted(lambda _: Reply(f"Fact number {next(counter)} is here. And", doubt=1.0))
        answer = await self.make(model)(QUESTIONS[0])
        assert isinstance(answer, Answer)
        assert len(model.prompts) < 150

    async def test_a_model_that_repeats_itself_is_stopped(self) -> None:
        model = Scripted(lambda _: Reply("It is what it is. It is what it is.", doubt=1.0))
        await self.make(model)(QUESTIONS[0])
        assert len(model.prompts) < 40

    async def test_an_error_comes_through_as_itself(self) -> None:
        def broken(_: Prompt) -> Reply:
            raise ConnectionError("the model is gone")

        with pytest.raises(ConnectionError, match="gone"):
            await self.make(Scripted(broken))(QUESTIONS[0])

    async def test_an_answer_among_choices_is_spelt_as_the_choice(self) -> None:
        question = replace(QUESTIONS[0], choices=("Kestrel1", "the KESTREL0!", "nowhere"))
        model = Scripted(reader)
        answer = await self.make(model)(question)
        assert answer.text == ("the KESTREL0!" if self.knows else "nowhere")
        prompts = [p for p in model.prompts if p.task.name in self.choosing and p.question == question.text]
        assert prompts
        assert all(prompt.choices == question.choices for prompt in prompts)

    async def test_runs_on_a_model_that_offers_just_what_it_needs(self) -> None:
        needs = self.make().needs
        answer = await self.make(Scripted(reader, capabilities=needs))(QUESTIONS[0])
        assert (answer.text in QUESTIONS[0].answers) is self.knows

    def test_is_refused_at_creation_what_it_needs(self) -> None:
        if self.make().needs == Capabilities():  # nothing beyond text, which every model gives
            assert self.make(Scripted(reader, capabilities=Capabilities())).needs == Capabilities()
            return
        with pytest.raises(MissingCapability, match=r"signal=consistency|another model"):
            self.make(Scripted(reader, capabilities=Capabilities()))
