"""Reflection: which things are asked about, what is kept, what is searched with."""

from __future__ import annotations

import pytest

from gnothi import events
from gnothi.methods.steps.reflection import Subject, admits_ignorance, query, reflect, subjects
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ListedGraph
from gnothi.types import Passage, Question

GRAPH = [("Velkarra", "was directed by", "Mira Tolven"), ("Mira Tolven", "was born in", "Kestrel"), ("Ulm", "lies in", "Vesk")]
QUESTION = Question("q", "Where was the director of velkarra born?", choices=("Kestrel", "Ulm", "in Kestrel"))


async def test_entities_of_question_and_choices_each_once_as_they_are_written() -> None:
    found = await subjects(ListedGraph(GRAPH), QUESTION)
    assert found == (Subject("velkarra", "Velkarra"), Subject("Kestrel", "Kestrel", True), Subject("Ulm", "Ulm", True))


async def test_without_a_graph_names_are_what_is_asked_about() -> None:
    """Section 6.3, where passages are the knowledge base; a question that names nothing is itself asked about."""
    named = Question("q", "Is the director of Blind Shaft older than Nina Simone?")
    assert await subjects(None, named) == (Subject("Blind Shaft"), Subject("Nina Simone"))
    assert await subjects(None, QUESTION) == (Subject(QUESTION.text),)


async def test_what_is_known_is_kept_and_everything_is_told() -> None:
    model = Scripted({"Velkarra": "Velkarra is\n a film.", "Ulm": "I know nothing about Ulm.", "Vesk": " "})
    about = [Subject("Velkarra", "a"), Subject("Ulm", "b"), Subject("Vesk", "c"), Subject("Velkarra", "d")]
    with events.record() as happened:
        known = await reflect(model, about, 100)
    assert known == (Passage("memory:Velkarra", "Velkarra is a film.", "Velkarra"),)
    assert [prompt.question for prompt in model.prompts] == ["Velkarra", "Ulm", "Vesk"]
    assert {prompt.task.name for prompt in model.prompts} == {"describe"}
    (reflected,) = happened
    assert isinstance(reflected, events.Reflected)
    assert [name for name, _ in reflected.told] == ["Velkarra", "Ulm", "Vesk"]
    assert reflected.known == ("Velkarra",)


async def test_nothing_to_ask_about() -> None:
    assert await reflect(Scripted({}), [], 100) == ()


@pytest.mark.parametrize(
    ("text", "ignorant"),
    [
        ("", True),
        ("unknown", True),
        ("I don't know.", True),
        ("I know nothing about The Amber Gate.", True),
        ("Sorry, I don’t have any information about that.", True),
        ("I cannot say anything about Vesk.", True),
        ("I know that Vesk is a town.", False),
        ("Vesk is a town. I know nothing else about it.", False),
        ("The unknown soldier is a monument.", False),
    ],
)
def test_ignorance(text: str, ignorant: bool) -> None:
    assert admits_ignorance(text) is ignorant


def test_query() -> None:
    internal = (Passage("a", "Velkarra is a film."), Passage("b", "Ulm is a town."))
    assert query(Question("q", " Who? ")) == "Who?"
    assert query(QUESTION, internal) == (
        "Where was the director of velkarra born? Kestrel / Ulm / in Kestrel\nVelkarra is a film.\nUlm is a town."
    )
