"""What the help of ``model.thinking`` and of ``model.thinking_tokens`` says of servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from gnothi.models import RemoteSettings, load_model
from gnothi.models.remote.thinking_fields import ladder
from gnothi.types import Decoding, Prompt, Task
from tests.command_line import Run
from tests.models.habit_server import ANSWER, Always, Api, Habit, thinks_unless
from tests.models.openai_server import Server, serving

pytestmark = pytest.mark.usefixtures("nothing_from_outside")

PROMPT = Prompt(Task("answer", "Answer with a name."), "Who kept the lighthouse of Orvel?")
SHORT = Decoding(max_tokens=20, stop=("\n",))


@contextmanager
def serves(thinks: Any, place: str = "reasoning") -> Iterator[Server]:
    with serving(Server(Api(Habit("it", thinks, place)))) as server:  # type: ignore[arg-type]
        yield server


async def asked(server: Server, **settings: Any) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """What is told of thinking, the request of a question, and those of the trial."""
    model = load_model("openai:x", RemoteSettings(base_url=server.url, cache="off", **settings))
    trial = list(server.posts)
    assert (await model.generate(PROMPT, SHORT)).text.strip() == ANSWER
    told = model.metadata.get("thinking", "")
    await model.aclose()
    return told, server.posts[len(trial)], trial


async def test_off_is_tried_in_every_way_and_what_the_reply_shows_counts() -> None:
    with serves(Always) as server:
        told, request, trial = await asked(server, thinking_tokens=300)
    fields = ladder("off", thinks=True)
    tried = [one for body in trial for one in fields if one.items() <= body.items()]
    assert list(dict.fromkeys(map(str, tried))) == list(map(str, fields))
    assert told == "cannot be switched off: thoughts in reasoning, 300 tokens of room"
    assert (request["max_tokens"], request.get("stop")) == (320, None)
    assert not any(one.items() <= request.items() for one in fields)
    with serves(thinks_unless(enable_thinking=False)) as server:
        told, request, _ = await asked(server)
    assert told.startswith("switched off by enable_thinking=false")
    assert (request["max_tokens"], request["stop"], request["enable_thinking"]) == (20, ["\n"], False)


async def test_a_model_that_does_not_think_is_asked_for_nothing() -> None:
    with serves(lambda _: False) as server:
        told, request, trial = await asked(server)
    assert told == ""
    assert request["max_tokens"] == 20
    assert not any(one.items() <= body.items() for body in [request, *trial] for one in ladder("off", thinks=True))


@pytest.mark.parametrize("thinking", ["on", "high"])
async def test_thoughts_that_are_wanted_are_asked_for_and_told_where_there_are_none(thinking: Any) -> None:
    fields = {"on": {"thinking": {"type": "enabled"}}, "high": {"reasoning": {"effort": "high"}}}[thinking]
    with serves(lambda body: fields.items() <= body.items()) as server:
        told, request, _ = await asked(server, thinking=thinking, thinking_tokens=300)
    assert told.startswith(f"{thinking} by {next(iter(fields))}=")
    assert request["max_tokens"] == 320
    with serves(lambda _: False) as server:
        told, _, _ = await asked(server, thinking=thinking)
    assert told.endswith(": none was seen")


async def test_fields_of_the_users_own_are_not_said_to_fail() -> None:
    """Where they are sent, no other way is tried: whether thinking can be switched off is not known."""
    with serves(Always) as server:
        told, request, trial = await asked(server, extra='{"reasoning_effort": "low"}', thinking_tokens=300)
    assert all(body["reasoning_effort"] == "low" for body in [request, *trial])
    assert told == "as model.extra says, no other way was tried: thoughts in reasoning, 300 tokens of room"


class Completing(Api):
    """A server of completions alone."""

    async def answer(self, path: str, body: Mapping[str, Any]) -> Any:
        if path != "/v1/completions":
            return await super().answer(path.replace("/chat/", "/no-chat/"), body)
        reply = self._reply({**body, "messages": [{"role": "user", "content": body["prompt"]}]})
        for choice in reply["choices"]:
            message = choice.pop("message")
            choice |= {"text": message.pop("content") or ""} | message
        return reply


@pytest.mark.parametrize("endpoint", ["completions", "auto"])
@pytest.mark.parametrize("thinking", ["off", "on", "high"])
async def test_completions_have_no_field_for_it(thinking: Any, endpoint: Any) -> None:
    for thinks in (Always, lambda _: False):
        with serving(Server(Completing(Habit("it", thinks, "reasoning")))) as server:  # type: ignore[arg-type]
            told, request, _ = await asked(server, thinking=thinking, endpoint=endpoint, thinking_tokens=300)
        assert "prompt" in request
        if thinks is not Always and thinking == "off":
            assert told == ""
            continue
        assert told.startswith(f"cannot be set to {thinking} on the completions endpoint, which has no field for it: ")
        assert ("thoughts in reasoning" in told) == (thinks is Always)
        assert ("use model.endpoint=chat" in told) == (endpoint == "completions")


def test_a_model_that_thinks_all_the_same_is_told(gnothi: Run) -> None:
    with serves(Always) as server:
        model = ("--model", "openai:x", "--set", f"model.base_url={server.url}")
        code, said, _ = gnothi("ask", PROMPT.question, "--method", "direct", *model)
    assert code == 0
    assert "thinking: cannot be switched off" in said
