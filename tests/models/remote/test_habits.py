"""Every habit of ``tests/models/habits.py``: no thought in any answer, no question lost to a refused field, no number that is
none read as certainty."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from gnothi import methods
from gnothi.errors import GnothiError, MissingCapability, ModelUnavailable, PromptTooLong
from gnothi.models import RemoteSettings, load_model
from gnothi.models.remote.tokens import FLOOR
from gnothi.signals.kinds.least_likely import least_likely
from gnothi.signals.kinds.perplexity import generation_perplexity
from gnothi.types import Decoding, Generation, Prompt, Task
from tests.messages import refused
from tests.models.habit_server import ANSWER, LOGPROB, Always, Api, Habit, is_trial, refuse, said_with
from tests.models.habits import HABITS
from tests.models.openai_server import Server, serving

QUESTIONS = 6  # each of the three kinds twice
GREEDY = Decoding(max_tokens=20, stop=("\n",))
WARM = Decoding(max_tokens=20, temperature=0.7, top_k=50, top_p=0.9, stop=("\n",), seed=1)
TASK = Task("answer", "Answer with a name.")


pytestmark = pytest.mark.usefixtures("nothing_from_outside")


@pytest.fixture(params=HABITS, ids=lambda habit: habit.name.replace(" ", "-"))
def habit(request: pytest.FixtureRequest) -> Habit:
    found: Habit = request.param
    return found


@pytest.fixture
def server(habit: Habit) -> Iterator[Server]:
    with serving(Server(Api(habit))) as found:  # type: ignore[arg-type]
        yield found


async def ask(model: Any, number: int) -> list[Generation]:
    """A question in one of the three ways in which methods ask."""
    prompt = Prompt(TASK, f"Who kept the lighthouse of Orvel in the year {1800 + number}?")
    if number % 3 == 0:
        return [await model.generate(prompt, GREEDY)]
    if number % 3 == 1:
        return list((await model.sample(prompt, 3, WARM)).generations)
    begun = Prompt(TASK, prompt.question, answer_so_far="It was Ann")
    found = await model.generate(begun, GREEDY)
    return [Generation("Ann " + found.text.strip(), found.tokens, found.finish)]


def test_there_are_many_habits() -> None:
    assert len(HABITS) >= 40
    assert len({habit.name for habit in HABITS}) == len(HABITS)


async def test_a_habit(habit: Habit, server: Server) -> None:
    model = load_model("openai:x", RemoteSettings(base_url=server.url, cache="off", timeout=60.0, **habit.settings))
    opening = len(server.posts)
    asked = await asyncio.gather(*(ask(model, number) for number in range(QUESTIONS)), return_exceptions=True)
    told = model.metadata
    await model.aclose()
    if habit.error:
        for result in asked:
            assert isinstance(result, GnothiError)
            assert habit.error in str(result)
        assert len(server.posts) - opening <= 2 * QUESTIONS  # at once: none was tried again and again
        return
    found = [generation for result in asked for generation in _given(result)]
    assert {generation.text.strip() for generation in found} == {ANSWER}
    assert habit.thinking in told.get("thinking", "")
    assert bool(habit.thinking) == bool(told.get("thinking"))
    left_out = set(filter(None, told.get("without", "").split(", ")))
    assert habit.without <= left_out <= habit.without | ({"logprobs"} if not habit.logprobs else set())
    assert all(name in told["why"] for name in left_out)
    for generation in found:
        assert "".join(token.text for token in generation.tokens).strip() in ("", ANSWER, ANSWER.removeprefix("Ann "))
        assert all(token.logprob in (LOGPROB, FLOOR) for token in generation.tokens)
        assert least_likely(generation) > 0.3  # 1 - exp(-0.5) = 0.39; without numbers, infinite
        assert generation_perplexity(generation) > 1.5
    assert any(generation.tokens for generation in found) == habit.logprobs


async def test_what_is_said_of_other_models_is_said_of_others() -> None:
    listed = {"data": [{"id": "y", "owned_by": "someone", "max_model_len": 2048}, {"id": "z"}]}
    with serving(Server(Api(Habit("lists others", models=listed)))) as server:  # type: ignore[arg-type]
        model = load_model("openai:x", RemoteSettings(base_url=server.url, cache="off"))
        assert not {"window", "server"} & set(model.metadata)
        await model.aclose()


async def test_room_for_thoughts_is_named_where_it_does_not_fit() -> None:
    too_long = refuse(
        "'max_tokens' is too large: 4116. This model's maximum context length is 4096 tokens; your request has 20 tokens",
        "max_tokens",
        when=lambda body: not is_trial(body),
    )
    with serving(Server(Api(Habit("thinks", Always, refuse=too_long)))) as server:  # type: ignore[arg-type]
        model = load_model("openai:x", RemoteSettings(base_url=server.url, cache="off"))
        with pytest.raises(PromptTooLong) as caught:
            await model.generate(Prompt(TASK, "Who?"), GREEDY)
        assert "with 4096 for a thought: fewer with <--set model.thinking_tokens=...>" in caught.value.message
        await model.aclose()


@pytest.mark.parametrize(
    "reason",
    [
        "This model only support stream mode, please enable the stream parameter to access the model. ",
        "Stream must be set to true",
        "Non-streaming requests are not supported for this model.",
    ],
)
def test_a_server_that_only_streams_is_named_at_once(reason: str) -> None:
    with serving(Server(Api(Habit("streams", refuse=refuse(reason, "messages"))))) as server:  # type: ignore[arg-type]
        with refused(ModelUnavailable):
            load_model("openai:x", RemoteSettings(base_url=server.url, cache="off"))
        assert len(server.posts) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_server_that_sends_us_on_gets_the_request(status: int) -> None:
    with serving(Server(Api(Habit("plain")))) as server, serving(Server(Api(Habit("plain")), moved_by=status)) as first:  # type: ignore[arg-type]
        first.moved = server.url.removesuffix("/v1")
        model = load_model("openai:x", RemoteSettings(base_url=first.url, cache="off"))
        assert (await model.generate(Prompt(TASK, "Who?"), GREEDY)).text == ANSWER
        await model.aclose()
    assert sorted(server.posts, key=str) == sorted(first.posts, key=str)  # some are sent at once


@pytest.mark.parametrize("name", ["nothing but 0", "403 for logprobs", "greedy is certain", "null"])
def test_a_method_that_needs_what_is_lacking_says_why(name: str) -> None:
    (habit,) = (one for one in HABITS if one.name == name)
    with serving(Server(Api(habit))) as server:  # type: ignore[arg-type]
        model = load_model("openai:x", RemoteSettings(base_url=server.url, cache="off"))
        with refused(MissingCapability):
            methods.create("cot", {"model": model}, {"signal": "perplexity"})


async def test_half_a_character_goes_into_no_request() -> None:
    """JSON can hold one half of a pair of surrogates, UTF-8 cannot."""
    halved = Habit("halves characters", mend=said_with(lambda text: f"{text} \ud83d"))
    with serving(Server(Api(halved))) as server:  # type: ignore[arg-type]
        model = load_model("openai:x", RemoteSettings(base_url=server.url, cache="off"))
        reply = await model.generate(Prompt(TASK, "Who?"), GREEDY)
        assert reply.text == f"{ANSWER} \ufffd"
        await model.generate(Prompt(TASK, "\ud83d said who?", answer_so_far=reply.text), GREEDY)
        assert "? said who?" in str(server.posts[-1])
        await model.aclose()


def _given(result: Any) -> list[Generation]:
    if isinstance(result, BaseException):
        raise result
    found: list[Generation] = result
    return found
