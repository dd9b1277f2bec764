from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import methods
from gnothi.methods.steps.reader import reasons_about
from gnothi.methods.steps.wording import looks_one_hop, names_in, naming
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Profile, Question

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


ONE_HOP = (
    "Who wrote Emma?",
    "What is the capital of France?",
    "In what city was Oscar Wilde born?",
    "What is William Murray, 1st Earl of Mansfield's occupation?",
    "When did Mozart die?",
    "How tall is Mont Blanc?",
    "who plays harry in harry potter",
)
MORE = (
    "",
    "In which country was the composer of the opera Carmen born?",
    "On which island did the engineer who planned the Dunmere Salt Tram grow up?",
    "Which is higher, Mont Blanc or Kilimanjaro?",
    "Which river flows past the town of the Lantern Fair?",
    "Do the Danube and the Rhine flow into the same sea?",
    "Who is the mother of the director of The Amber Harbour?",
    "Where did Anna's husband study?",
    "Where was the director of The Amber Harbour born?",
)


@pytest.mark.parametrize("text", ONE_HOP)
def test_one_fact_is_asked_for(text: str) -> None:
    assert looks_one_hop(Question("q", text))
    assert not looks_one_hop(Question("q", text, choices=("a", "b")))


def test_what_a_passage_calls_so_is_one_thing() -> None:
    orvel = Passage("a", "The lighthouse of Orvel was built in 1820. Its first keeper was Dana Brisk.")
    for text in ("Who built the lighthouse of Orvel?", "Who was the first keeper of the lighthouse of Orvel?"):
        assert not looks_one_hop(Question("q", text))
        assert looks_one_hop(Question("q", text), [orvel])
    director = Question("q", "Who is the mother of the director of The Amber Harbour?")
    assert not looks_one_hop(director, [Passage("b", "The Amber Harbour is a film by the director Ona Reis.")])


@pytest.mark.parametrize("text", MORE)
def test_more_than_one_fact_is_asked_for(text: str) -> None:
    assert not looks_one_hop(Question("q", text))


def test_a_model_with_tasks_of_its_own_reasons_as_it_was_taught() -> None:
    general, taught = Scripted({}), Scripted({})
    taught.profile = Profile(tasks=frozenset({"reason", "answer"}))
    one, more = Question("q", ONE_HOP[0]), Question("q", MORE[1])
    assert [reasons_about("auto", question, general) for question in (one, more)] == [False, True]
    assert [reasons_about("auto", question, taught) for question in (one, more)] == [True, True]
    assert reasons_about(True, one, general)
    assert not reasons_about(False, more, taught)
