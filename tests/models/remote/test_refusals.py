"""Which field a server complains about, by its words alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.models.remote.refusals import PREFILL, Refused, about_length, about_value, read_error, refused_field
from gnothi.models.remote.window import Sizes, window

BODY: dict[str, Any] = {
    "model": "x",
    "messages": [{"role": "user", "content": "Who?"}],
    "temperature": 3.0,
    "top_p": 0.9,
    "top_k": 50,
    "max_tokens": 9,
    "n": 2,
    "seed": 1,
    "stop": ["\n"],
    "logprobs": True,
    "top_logprobs": 5,
}


@pytest.mark.parametrize(
    ("said", "named", "expected"),
    [
        ("Unsupported value: 'temperature' does not support 3.0 with this model.", ("temperature",), "temperature"),
        ("invalid temperature: only 1 is allowed for this model", (), "temperature"),
        ("Only one completion choice is allowed", (), "n"),
        ("candidate_count must be 1", (), "n"),
        ("Multiple candidates are not supported", (), "n"),
        ("top_logprobs is not supported", (), "top_logprobs"),
        ("Extra inputs are not permitted: n", (), "n"),
        ("You are not allowed to sample logprobs from this model", (), "logprobs"),
        ("Log probabilities are not available", (), "logprobs"),
        ("Unrecognized request argument supplied: topLogprobs", (), "top_logprobs"),
        ("Additional properties are not allowed ('top_k' was unexpected)", (), "top_k"),
        ("parameter `random_seed` is unknown", (), "seed"),
        ("'stopSequences' is not supported; did you mean 'stop_sequences'?", (), "stop"),
        ("property 'n' is unsupported, did you mean 'seed'?", (), "n"),
        ("Unknown parameter top_k. Valid parameters are: temperature, seed, stop", (), "top_k"),
        ("seed must be less than 65536", (), "seed"),
        ("", ("body.top_k",), "top_k"),
        ("no longer supported: stop", ("stop[0]",), "stop"),
        # about something else
        ("Unrecognized request argument supplied: top_a", (), None),
        ("temperature must be between 0 and 2", ("temperature",), None),
        ("max_tokens is too large: 9. This model's maximum context length is 8", ("max_tokens",), None),
        ("The image could not be read", (), None),
        ("Bad Request", (), None),
    ],
)
def test_which_field(said: str, named: tuple[str, ...], expected: str | None) -> None:
    assert refused_field(Refused("m", said, named), BODY) == expected


def test_a_field_that_was_not_sent_is_not_to_blame() -> None:
    body = {key: value for key, value in BODY.items() if key != "seed"}
    assert refused_field(Refused("m", "seed is not supported"), body) is None


def test_what_callers_chose_is_theirs_to_change() -> None:
    assert about_value(Refused("m", "temperature must be between 0 and 2"), BODY)
    assert not about_value(Refused("m", "n must be at most 1"), BODY)
    assert not about_value(Refused("m", "Bad Request"), BODY)


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 256 tokens. However, you requested 300 tokens.",
        "the request exceeds the available context size (4096 tokens)",
        "Input is too long for this model: the prompt exceeds 1000 tokens",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
        "`inputs` must have less than 1024 tokens. Given: 3000",
        "Range of input length should be [1, 30720]",
    ],
)
def test_too_long(said: str) -> None:
    assert about_length(Refused("m", said))


@pytest.mark.parametrize(
    "said",
    [
        "The conversation must end with a user message.",
        "This model does not support assistant message prefill.",
        "Assistant response prefill is incompatible with enable_thinking.",
        "Cannot set `add_generation_prompt` to True when the last message is from the assistant.",
        "continue_final_message: extra inputs are not permitted",
    ],
)
def test_a_begun_reply(said: str) -> None:
    begun = {**BODY, "messages": [*BODY["messages"], {"role": "assistant", "content": "Ann"}], "continue_final_message": True}
    assert refused_field(Refused("m", said), begun) == PREFILL
    assert refused_field(Refused("m", said), BODY) is None


@pytest.mark.parametrize(
    ("body", "said", "named"),
    [
        ({"error": {"message": "No.", "param": "n"}}, "No.", ("n",)),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra"}]}, "seed: Extra", ("seed",)),
        ({"message": {"detail": [{"loc": ["body", "top_k"], "msg": "Extra"}]}}, "top_k: Extra", ("top_k",)),
        ([{"error": {"code": 400, "message": "Unknown"}}], "Unknown", ()),
        ({"error": {"message": "P", "metadata": {"raw": '{"error": {"message": "no n", "param": "n"}}'}}}, "P; no n", ("n",)),
        ({"detail": "Not here"}, "Not here", ()),
        ("<html>", "a page without words", ()),
        ("<html><head><title>502 Bad\n Gateway</title></head><body>nginx</body></html>", "502 Bad Gateway", ()),
        ("<!DOCTYPE html><style>p {}</style><p>Rate&nbsp;limit <b>exceeded</b>", "Rate limit exceeded", ()),
        ("3 < 5", "3 < 5", ()),
        (None, "no reason given", ()),
    ],
)
def test_where_servers_say_it(body: object, said: str, named: tuple[str, ...]) -> None:
    error = read_error(body)
    assert (error.reason, error.parameters) == (said, named)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["error", "message", "detail", "loc", "param", "raw"]), x),
    )
)
def test_whatever_is_said_is_read(body: object) -> None:
    error = read_error(body)
    assert error.reason
    refused_field(Refused("m", error.reason, error.parameters), BODY)


def test_far_too_few_tokens_show_at_once() -> None:
    sizes = Sizes()
    assert sizes.learn(30, 1300) == 325
    assert sizes.cut == 1
    assert sizes.learn(325, 1300) is None


def test_fewer_tokens_than_usual_show_once_the_usual_is_known() -> None:
    sizes = Sizes()
    assert [sizes.learn(size // 4, size) for size in range(1000, 8000, 1000)] == [None] * 7
    assert sizes.learn(2051, 17_000) == 4250  # of 4,096, as Ollama cuts them
    assert sizes.learn(4250, 17_000) is None


def test_a_window_makes_smaller_cuts_show() -> None:
    sizes = Sizes()
    for size in range(1000, 8000, 1000):
        assert sizes.learn(size // 4, size) is None
    assert sizes.learn(2048, 10_240) is None
    sizes.window = 2048
    assert sizes.learn(2048, 10_240) == 2560


def test_other_languages_are_no_cuts() -> None:
    sizes = Sizes()
    ratios = (0.25, 0.22, 0.3, 0.4, 0.5, 0.24, 0.2)
    assert [sizes.learn(round(ratio * 4000), 4000) for ratio in ratios] == [None] * 7


def test_a_server_that_does_not_count_cuts_nothing() -> None:
    sizes = Sizes()
    assert sizes.learn(0, 4000) is None
    assert sizes.cut == 0


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"id": "x", "max_model_len": 8192}, 8192),
        ({"id": "x", "context_window": 131072, "owned_by": "Groq"}, 131072),
        ({"default_generation_settings": {"n_ctx": 4096, "params": {}}, "total_slots": 1}, 4096),
        ({"models": [{"name": "y:1b", "context_length": 1}, {"name": "x:latest", "context_length": 4096}]}, 4096),
        ({"data": [{"id": "x", "loaded_context_length": 2048, "max_context_length": 32768}]}, 2048),
        ({"models": [{"name": "y", "context_length": 4096}]}, None),
        ({"id": "x", "max_model_len": None}, None),
        ({"max_model_len": True}, None),
        ([], None),
        ("busy", None),
        (None, None),
    ],
)
def test_where_servers_tell_it(entry: object, expected: int | None) -> None:
    assert window(entry, "x") == expected
