"""Reading what servers say, down to tokens whose texts do not add up."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnothi.errors import UsageError
from gnothi.models.remote.replies import Bill, Choice, InvalidReply, cut, read, without_start
from gnothi.models.remote.tokens import aligned, chat_texts
from gnothi.types import Token

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
    [None, "", [], {}, {"choices": []}, {"choices": {}}, {"choices": [1]}, {"error": {"message": "busy"}}, completion(text=3)],
)
def test_what_is_no_reply(data: object) -> None:
    with pytest.raises(InvalidReply):
        read(data, stops=False)


def test_a_withheld_reply() -> None:
    with pytest.raises(UsageError, match="content filter"):
        read(completion(finish_reason="content_filter"), stops=False)


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
