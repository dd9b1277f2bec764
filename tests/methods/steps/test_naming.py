from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import methods
from gnothi.methods.steps.naming import names_in, naming, runs_of_names
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Question

RIGHT = Passage("r", "Odile Varr was an engineer.", "Odile Varr")
PART = Passage("p", "Varr is a village.", "Varr")
OTHER = Passage("o", "An engineer has an occupation.", "Occupation")
QUESTION = "What is Odile Varr's occupation?"


def test_what_holds_most_of_the_names_is_shown() -> None:
    assert names_in(QUESTION) == {"odile", "varr"}
    assert naming(QUESTION, [OTHER, RIGHT, PART]) == (RIGHT,)
    assert naming(QUESTION, [OTHER, PART]) == (PART,)
    assert naming(QUESTION, [OTHER]) == (OTHER,)
    assert naming("who planned the tram", [OTHER, RIGHT]) == (OTHER, RIGHT)
    assert naming(QUESTION, []) == ()


@given(st.text(), st.lists(st.builds(Passage, st.text(), st.text(), st.text())))
def test_something_is_always_shown_and_in_order(question: str, passages: list[Passage]) -> None:
    shown = list(naming(question, passages))
    assert bool(shown) == bool(passages)
    rest = iter(passages)
    assert all(any(one is other for other in rest) for one in shown)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, (RIGHT,)), *((given, (OTHER, RIGHT)) for given in ({"focus": False}, {"reason": False}, {"reason": True}))],
)
async def test_a_reader_is_shown_what_helps(settings: dict[str, object], expected: tuple[Passage, ...]) -> None:
    model = Scripted({}, default="So the answer is engineer.")
    resources = {"model": model, "retriever": ScriptedRetriever([OTHER, RIGHT])}
    answer = await methods.create("rag", resources, settings)(Question("q", QUESTION))
    assert (answer.text, model.prompts[0].passages) == ("engineer", expected)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the mother of the director of film Polish-Russian War (Film)?", ("Polish-Russian War (Film)",)),
        ("Which film came out first, Blind Shaft or The Mask Of Fu Manchu?", ("Blind Shaft", "The Mask Of Fu Manchu")),
        (
            "Are Bank of England and Apollo 11 older than Nina Simone's brother Sam?",
            ("Bank of England", "Apollo 11", "Nina Simone", "Sam"),
        ),
        ("Steel conducts heat, why?", ("Steel",)),
        ("why does metal conduct 3 kinds of heat", ()),
        ("", ()),
    ],
)
def test_names_as_the_question_writes_them(question: str, names: tuple[str, ...]) -> None:
    assert runs_of_names(question) == names


@given(st.text(max_size=60))
def test_every_name_stands_in_the_question(question: str) -> None:
    for name in runs_of_names(question):
        assert all(word in question for word in name.split())
