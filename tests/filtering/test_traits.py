from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.filtering.traits import STAGES, Texts, traits, traits_of_reading, traits_of_search
from gnothi.types import Passage, ScoredPassage


def values(question: str | None, memory: str | None = None, evidence: str | None = None) -> dict[str, float]:
    return {name: value for name, (_, value) in traits(Texts(question, memory, evidence)).items()}


def test_what_an_answer_shows() -> None:
    found = values("when did Jane Austen write Emma", "In 1815.", "I don't know")
    assert (found["memory fits the question"], found["evidence fits the question"]) == (1.0, -1.0)
    assert (found["memory is a year"], found["evidence is a year"]) == (1.0, 0.0)
    assert (found["memory refuses"], found["evidence refuses"]) == (0.0, 1.0)
    assert (found["memory speaks of itself"], found["evidence speaks of itself"]) == (0.0, 1.0)
    assert found["question asks when"] == 1.0
    assert found["question wants yes or no"] == 0.0
    assert values("Is Emma older than Evelina?")["question wants yes or no"] == 1.0


@pytest.mark.parametrize(
    ("memory", "evidence", "same", "holds"),
    [("The Jane Austen", "jane austen", 1, 1), ("Austen", "Jane Austen", 0, 1), ("Jan", "Jane Austen", 0, 0), ("", "x", 0, 0)],
)
def test_whether_two_answers_agree(memory: str, evidence: str, same: float, holds: float) -> None:
    found = values("who wrote Emma", memory, evidence)
    assert (found["answers are the same"], found["one answer holds the other"]) == (same, holds)


def test_stages_tell_when_a_trait_is_known() -> None:
    stage = {name: stage for name, (stage, _) in traits(Texts("who wrote Emma", "Jane", "Austen")).items()}
    assert stage["question words"] == "question"
    assert stage["memory words"] == "draft"
    assert stage["evidence words"] == stage["answers share words"] == "reading"
    assert set(stage.values()) <= set(STAGES)
    # What is not there shows nothing.
    assert set(values("who wrote Emma")) == {name for name, when in stage.items() if when == "question"}
    assert values(None) == {}


@given(st.text(), st.text(), st.text())
def test_any_texts_give_the_same_finite_numbers(question: str, memory: str, evidence: str) -> None:
    found = values(question, memory, evidence)
    assert found.keys() == values("who", "a", "b").keys()
    assert all(math.isfinite(value) for value in found.values())


A, B = Passage("a", "Emma is by Jane Austen.", "Emma"), Passage("b", "Emma is a film.", "Emma")


def test_what_a_search_and_the_passages_show() -> None:
    found = traits_of_search("Who wrote Emma?", "Austen", [ScoredPassage(A, 8.0), ScoredPassage(B, 6.0)])
    assert found == {
        "passages": 2,
        "best score": 8,
        "score drops by": 0.25,
        "passages on what is asked about": 2,
        "titles that stand twice": 1,
        "passages hold memory's answer": 0.5,
        "the best holds memory's answer": 1,
    }
    assert traits_of_search("Who wrote Emma?", "Austen", []).keys() == found.keys()
    read = traits_of_reading("Burney", "Jane Austen", [A])
    assert (read["what was read holds memory's answer"], read["what was read holds evidence's answer"]) == (0, 1)
    assert (read["passages read"], read["titles read twice"]) == (1, 0)
