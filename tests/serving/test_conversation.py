"""Conversations: a follow-up is made to stand alone by one call; a front end's own prompts are no questions."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.serving.conversation import chat_request, conversation, response_request
from gnothi.serving.failures import Refusal
from gnothi.serving.follow_ups import STANDALONE, Turn, standalone
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Profile, Prompt
from tests.command_line import KNOWN, script
from tests.serving.served import served

FOLLOW_UP, WHOLE = "And who wrote it?", KNOWN
HISTORY = [
    {"role": "system", "content": "You are kind."},
    {"role": "user", "content": "Which book is known?"},
    {"role": "assistant", "content": "The known book [1]"},
    {"role": "user", "content": FOLLOW_UP},
]
TITLE = "### Task:\nGenerate a title.\n### Chat History:\nUSER: Who wrote the known book?"


def talking(prompt: Prompt) -> Reply:
    if prompt.task.name == STANDALONE.name:
        return Reply(WHOLE if "known book" in prompt.passages[1].text else prompt.question)
    return Reply('{"title":\n "A book"}') if prompt.task.name == "helper" else script(prompt)


def model() -> Scripted:
    return Scripted(talking, name="lab", thresholds={"gram": -6.0})


async def test_a_follow_up_is_made_to_stand_alone_and_the_gate_judges_that() -> None:
    speaking = model()
    async with served(speaking) as server:
        body = {"model": "gnothi/seakr", "messages": HISTORY}
        found = (await server.http.post("/v1/chat/completions", json=body)).json()
        assert found["choices"][0]["message"]["content"] == "Ada Bram"
        assert (found["gnothi"]["asked"], found["gnothi"]["question"]) == (FOLLOW_UP, WHOLE)
        assert found["choices"][0]["message"]["reasoning"].startswith(f"asked: {WHOLE}\n")
        calls = [prompt.task.name for prompt in speaking.prompts]
        assert calls.count(STANDALONE.name) == 1
        assert calls[0] == STANDALONE.name
        first = len(speaking.prompts)
        alone = (await server.chat(WHOLE)).json()
        assert STANDALONE.name not in [prompt.task.name for prompt in speaking.prompts[first:]]
        assert alone["gnothi"]["decisions"] == found["gnothi"]["decisions"]
        assert found["gnothi"]["usage"]["model_calls"] == alone["gnothi"]["usage"]["model_calls"] + 1
        again = (await server.http.post("/v1/responses", json={"model": "gnothi/seakr", "input": HISTORY})).json()
        assert again["gnothi"]["question"] == WHOLE


async def test_the_last_question_alone_where_that_is_wanted() -> None:
    speaking = model()
    async with served(speaking, follow_ups="last") as server:
        found = (await server.http.post("/v1/chat/completions", json={"model": "direct", "messages": HISTORY})).json()
    assert found["gnothi"]["question"] == FOLLOW_UP
    assert STANDALONE.name not in [prompt.task.name for prompt in speaking.prompts]


async def test_a_model_without_instructions_takes_the_question_as_it_came_and_says_so() -> None:
    taught = Scripted(script)
    taught.profile = Profile(tasks=frozenset({"answer", "reason"}))
    text, (warning,) = await standalone(taught, FOLLOW_UP, [Turn("user", "Which book?")])
    assert text == FOLLOW_UP
    assert "what was said before is not taken into account" in warning


async def test_a_blank_reply_leaves_the_question_as_it_came() -> None:
    assert await standalone(Scripted({}, default=" "), FOLLOW_UP, [Turn("user", "Which book?")]) == (FOLLOW_UP, ())


async def test_helper_prompts_are_answered_without_gate_and_search() -> None:
    speaking = model()
    async with served(speaking) as server:
        body = {"model": "gnothi/seakr", "messages": [*HISTORY[:3], {"role": "user", "content": TITLE}]}
        found = (await server.http.post("/v1/chat/completions", json=body)).json()
    assert found["choices"][0]["message"]["content"] == '{"title":\n "A book"}'
    assert found["gnothi"]["decisions"] == found["gnothi"]["searches"] == []
    assert [prompt.task.name for prompt in speaking.prompts] == ["helper"]


def test_what_was_said_before_is_of_user_and_assistant_alone() -> None:
    found = conversation([*HISTORY, {"role": "assistant", "content": "Ada"}, {"role": "tool", "content": {}}], "messages", 100)
    assert found.question == FOLLOW_UP
    assert found.history == (Turn("user", "Which book is known?"), Turn("assistant", "The known book [1]"))


def test_parts_of_text_are_put_together_and_items_without_role_left_out() -> None:
    parts = [{"type": "input_text", "text": "Who wrote"}, {"type": "input_text", "text": "it?"}]
    items = [{"type": "reasoning", "summary": []}, {"role": "user", "content": parts}]
    assert response_request({"model": "m", "input": items}, 100).conversation.question == "Who wrote\nit?"


_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_message = st.fixed_dictionaries({}, optional={"role": st.sampled_from(["user", "assistant", "x"]) | _json, "content": _json})


@settings(max_examples=40)
@given(
    body=st.fixed_dictionaries(
        {"model": st.just("m") | _json},
        optional={key: st.lists(_message, max_size=3) | _json for key in ("messages", "input")}
        | dict.fromkeys(("n", "stream", "stream_options", "tool_choice", "response_format", "text", "include"), _json),
    )
)
def test_whatever_comes_is_read_or_refused(body: dict[str, Any]) -> None:
    for read in (chat_request, response_request):
        with contextlib.suppress(Refusal):
            assert read(body, 50).conversation.question.strip()


def test_a_helper_prompt_may_be_longer_than_a_question() -> None:
    found = conversation([*HISTORY, {"role": "user", "content": TITLE + "a" * 100}], "messages", 50)
    assert found.helper
    assert found.history == ()


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert conversation([{"role": "user", "content": "Who\ud800?"}], "messages", 50).question == "Who??"
