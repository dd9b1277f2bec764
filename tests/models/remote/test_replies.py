"""Reading what servers say, down to tokens whose texts do not add up."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnothi.errors import UsageError
from gnothi.models.remote.replies import FIELDS, Bill, Choice, InvalidReply, OtherShape, cut, read, split_thought, without_start
from gnothi.models.remote.tokens import FLOOR, aligned, chat_texts, number
from gnothi.types import Token
from tests.messages import refused

TEXTS = st.text(alphabet="ab é字\n", max_size=12)


def completion(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": "Paris", "finish_reason": "stop", **fields}]}


def test_both_endpoints() -> None:
    reply = read({**completion(), "usage": {"prompt_tokens": 3, "completion_tokens": 2}}, stops=False)
    assert (reply.choices, reply.bill) == ((Choice("Paris", None, "eos"),), Bill(3, 2))
    message = {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "length"}]}
    reply = read(message, stops=True)
    assert (reply.choices, reply.bill) == ((Choice("", None, "length"),), None)


def test_choices_come_in_the_order_of_their_index() -> None:
    choices = [{"index": 1, "text": "b", "finish_reason": "stop"}, {"index": 0, "text": "a", "finish_reason": "stop"}]
    assert [choice.text for choice in read({"choices": choices}, stops=False).choices] == ["a", "b"]


@pytest.mark.parametrize(
    ("fields", "stops", "finish"),
    [
        ({}, False, "eos"),
        ({}, True, "stop"),
        ({"stop_reason": None}, True, "eos"),
        ({"stop_reason": "\n"}, True, "stop"),
        ({"stop_reason": 128001}, True, "eos"),
        ({"finish_reason": "length"}, True, "length"),
    ],
)
def test_how_it_ended(fields: dict[str, Any], stops: bool, finish: str) -> None:
    assert read(completion(**fields), stops).choices[0].finish == finish


@pytest.mark.parametrize(
    "data",
    [
        *(None, "", [], {}, {"choices": []}, {"choices": {}}, {"choices": [1]}, {"error": {"message": "busy"}}),
        completion(text=3),
        completion(text="", finish_reason="OTHER"),
    ],
)
def test_what_is_no_reply(data: object) -> None:
    with pytest.raises(InvalidReply):
        read(data, stops=False)


def test_a_withheld_reply() -> None:
    for reason in ("content_filter", "content_filter: RECITATION"):
        with refused(UsageError):
            read(completion(finish_reason=reason), stops=False)


def test_a_call_of_a_tool_is_no_empty_answer() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    for message, reason in (
        ({"content": "", "tool_calls": [call]}, "stop"),
        ({"content": None, "function_call": call["function"]}, "stop"),
        ({"content": None}, "function_call_filter: MALFORMED_FUNCTION_CALL"),
    ):
        with refused(UsageError):
            read({"choices": [{"message": message, "finish_reason": reason}]}, stops=False)


@pytest.mark.parametrize("finish_reason", ["", None, "stop", "STOP", "eos_token", "end_turn", "stop_sequence"])
def test_an_empty_answer_that_is_complete_is_one(finish_reason: str | None) -> None:
    assert read(completion(text="", finish_reason=finish_reason), stops=False).choices[0].text == ""


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_nonsense_is_named_as_such(nonsense: object) -> None:
    for data in (nonsense, {"choices": nonsense}, {"choices": [nonsense]}, completion(logprobs=nonsense, index=nonsense)):
        with contextlib.suppress(InvalidReply):
            read(data, stops=False)


@given(st.lists(TEXTS), TEXTS, st.booleans())
@example(["▁The", "▁end"], "The end", False)
@example(["ĠThe", "Ġend", "<|im_end|>"], "The end", False)
@example(["x"], "The end", False)
@example([], "The end", False)
def test_tokens_add_up_to_the_text_or_there_are_none(names: list[str], text: str, thinks: bool) -> None:
    found = aligned(names, [-1.0] * len(names), text, thinks)
    assert found.tokens is None or "".join(token.text for token in found.tokens) == text


def test_names_of_tokens_that_are_no_texts() -> None:
    for names in (["▁The", "▁end"], ["ĠThe", "Ġend", "<|im_end|>"]):
        tokens = aligned(names, [-1.0, -2.0, -3.0][: len(names)], "The end").tokens
        assert tokens is not None
        assert [token.logprob for token in tokens] == [-1.0, -2.0]
    assert aligned(["x"], [-1.0], "The end").tokens is None


@given(st.lists(TEXTS.filter(bool)), st.integers(0, 40))
def test_tokens_of_a_text_that_was_cut(names: list[str], end: int) -> None:
    whole = "".join(names)
    tokens = aligned(names, [-1.0] * len(names), whole[:end]).tokens
    assert tokens is not None or not names
    assert "".join(token.text for token in tokens or ()) == whole[:end]
    assert len(tokens or ()) <= len(names)
    choice = Choice(whole, tuple(Token(name, -1.0) for name in names), "eos")
    rest = without_start(choice, min(end, len(whole)))
    assert "".join(token.text for token in rest.tokens or ()) == rest.text == whole[end:]
    shorter = cut(choice, lambda _: min(end, len(whole)), "stop")
    assert (shorter.text, shorter.finish) == (whole[:end], "stop")
    assert cut(choice, lambda _: None, "stop") is choice


@given(st.text(alphabet="aé字😀", max_size=8), st.randoms())
def test_characters_spread_over_tokens(text: str, chance: Any) -> None:
    raw = list(text.encode())
    cuts = sorted(chance.sample(range(len(raw) + 1), min(3, len(raw))))
    parts = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert "".join(chat_texts([{"token": "?", "bytes": part} for part in parts])) == text


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
        ({"content": "", "refusal": "I cannot say."}, "I cannot say.", ""),
        ({"content": [{"type": "refusal", "refusal": "I cannot say."}]}, "I cannot say.", ""),
        ({"content": [{"type": "text", "text": {"value": "Ann", "annotations": []}}]}, "Ann", ""),
        ({"content": "A text that speaks of <think> and </think>."}, "A text that speaks of <think> and </think>.", ""),
        ({"text": "Ann"}, "Ann", "")
    ]
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
def test_nonsense_in_a_message_is_named_as_such(nonsense: Any) -> None:
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
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": 0, "completion_tokens": 7, "total_tokens": 7}, None),
    ],
)
def test_bills(usage: dict[str, Any], expected: Bill | None) -> None:
    assert read({"choices": [{"text": "Ann"}], "usage": usage}, stops=False).bill == expected
