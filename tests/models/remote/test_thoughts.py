"""Thought and answer in a message, wherever they stand."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.models.remote.replies import Bill, InvalidReply, OtherShape, read
from gnothi.models.remote.thoughts import FIELDS, split_thought
from gnothi.models.remote.tokens import FLOOR, aligned, number

ANN = {"type": "text", "text": "Ann"}


@pytest.mark.parametrize(
    ("message", "answer", "thought"),
    [
        ({"content": "Ann"}, "Ann", ""),
        ({"content": "<think>Otto?</think>\n\nAnn"}, "Ann", "Otto?"),
        ({"content": "Otto?</think>Ann"}, "Ann", "Otto?"),
        ({"content": "Ann", "reasoning_content": "Otto?"}, "Ann", "Otto?"),
        ({"content": "<think>\n\n</think>\n\nAnn", "reasoning": "Otto?"}, "Ann", "Otto?"),
        ({"content": "Ann", "reasoning": None, "reasoning_details": [{"type": "summary", "summary": "Otto?"}]}, "Ann", "Otto?"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Otto?"}]}, ANN]}, "Ann", "Otto?"),
        ({"content": [{"type": "reasoning", "text": "Otto?"}, {"type": "output_text", "text": "An"}, "n"]}, "Ann", "Otto?"),
        ({"content": "Ann", "thinking_blocks": [{"type": "thinking", "thinking": "Otto?", "signature": "x"}]}, "Ann", "Otto?"),
        ({"content": None, "refusal": "I cannot say."}, "I cannot say.", ""),
        ({"content": "A text that speaks of <think> and </think>."}, "A text that speaks of <think> and </think>.", ""),
        ({"text": "Ann"}, "Ann", ""),
    ],
)  # fmt: skip
def test_answer_and_thought(message: dict[str, Any], answer: str, thought: str) -> None:
    found = split_thought(message)
    assert found is not None
    assert (found.text, found.thought, found.closed) == (answer, thought, True)
    assert bool(found.place) == bool(thought)


def test_a_thought_that_never_ends() -> None:
    found = split_thought({"content": "<think>Otto? So the answer is Otto"})
    assert found is not None
    assert (found.text, found.closed) == ("", False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from([*FIELDS, "content", "type", "text", "summary"]), x),
    )
)
def test_nonsense_is_named_as_such(nonsense: Any) -> None:
    for message in (nonsense, {"content": nonsense}, *({"content": "Ann", name: nonsense} for name in FIELDS)):
        with contextlib.suppress(InvalidReply):
            read({"choices": [{"message": message}]}, stops=False)


@pytest.mark.parametrize("data", [None, [], "x", {"output": []}, {"message": {"content": "Ann"}}, {"candidates": []}])
def test_other_interfaces(data: object) -> None:
    with pytest.raises(OtherShape):
        read(data, stops=False)


@pytest.mark.parametrize("value", [None, True, "-0.1", "-inf", float("nan"), 0.5, float("inf"), [], {}])
def test_what_is_no_log_probability(value: object) -> None:
    assert number(value) is None


def test_what_is_one() -> None:
    assert [number(value) for value in (-0.5, 0, 1e-7, float("-inf"), -9999.0, -1e9)] == [-0.5, 0.0, 0.0, FLOOR, FLOOR, FLOOR]


def test_an_answer_is_found_from_the_end() -> None:
    names = ["<think>", "Ann", "?", "</think>", "\n\n", "Ann", " Bell", "<|im_end|>"]
    found = aligned(names, [None, -9.0, -9.0, -9.0, -9.0, -1.0, -2.0, -3.0], "Ann Bell", thinks=True)
    assert found.tokens is not None
    assert [(token.text, token.logprob) for token in found.tokens] == [("Ann", -1.0), (" Bell", -2.0)]
    assert found.thought == 5


@pytest.mark.parametrize(
    "names", [["<think>?</think>Ann", " Bell"], ["Ann", " Bell", " and", " more"], ["Bob"], ["<think>", "Ann", "?"]]
)
def test_an_answer_that_cannot_be_found_exactly_has_no_numbers(names: list[str]) -> None:
    found = aligned(names, [-1.0] * len(names), "Ann Bell", thinks=True)
    assert found.tokens is None
    assert found.lacking


@pytest.mark.parametrize("names", [["Ann"], ["Ann", " Bell"], ["Ann", " Bell", " kept"]])
def test_numbers_of_the_first_tokens_alone_are_none_of_the_answer(names: list[str]) -> None:
    found = aligned(names, [-1.0] * len(names), "Ann Bell kept the lighthouse of Orvel for long")
    assert found.tokens is None
    assert found.lacking


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}, Bill(5, 7)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 6}}, Bill(5, 7, 6)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "reasoning_tokens": 6}, Bill(5, 7, 6)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 47, "reasoning_tokens": 40}, Bill(5, 42, 40)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 47}, Bill(5, 2, 0, 40)),
        ({"input_tokens": 5, "output_tokens": 7, "completion_tokens_details": None}, Bill(5, 7)),
    ],
)
def test_bills(usage: dict[str, Any], expected: Bill) -> None:
    assert read({"choices": [{"text": "Ann"}], "usage": usage}, stops=False).bill == expected
