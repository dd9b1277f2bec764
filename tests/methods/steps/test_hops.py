from __future__ import annotations

import pytest

from gnothi.methods.steps.hops import looks_one_hop
from gnothi.methods.steps.reader import reasons_about
from gnothi.testing.model import Scripted
from gnothi.types import Passage, Profile, Question

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
