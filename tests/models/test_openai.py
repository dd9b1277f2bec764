"""The backend against a real server on the loopback interface, around a tiny network that tests can ask directly, too."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from gnothi.concurrency import gather
from gnothi.errors import BudgetSpent, InvalidSetting, MissingDependency, ModelUnavailable, PromptTooLong, UsageError
from gnothi.models import RemoteSettings, load_model
from gnothi.models import openai as gnothi_openai
from gnothi.models.batched import Batched
from gnothi.models.remote.budget import Budget, spending
from gnothi.models.remote.client import Client
from gnothi.models.remote.features import Features
from gnothi.models.rendering import Tagged
from gnothi.models.transformers import TransformersBackend
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, WARM, LanguageModelConformance, texts
from gnothi.types import Decoding, Generation, Prompt, StateSpec, Task
from tests.messages import refused
from tests.models import openai_server
from tests.models.openai_api import Api, Offer, Raw
from tests.models.openai_server import FAULTS, Fault, Server, nobody, serving
from tests.patience import PATIENCE, Deadlines

TINY = "tiny"
SPEC = f"openai:{TINY}"
FAST = RemoteSettings(cache="off", timeout=PATIENCE)
TOLD: dict[str, Any] = {"endpoint": "chat", "logprobs": "on", "scoring": "off", "prefill": "text"}
"""Settings that leave nothing to find out: the first request is the first question."""
TEXT_ONLY = Offer(
    completions=False, ignores=frozenset({"logprobs", "n"}), usage=False, stop_reason=False, owner="library", repeats=True
)
Serve = Callable[..., Server]


pytestmark = pytest.mark.usefixtures("nothing_from_outside")


@pytest.fixture(autouse=True)
def large_prompts_alone_show_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small server reads the last turn of a chat alone, so that it counts less than what it was sent."""
    monkeypatch.setattr("gnothi.models.remote.window.ENOUGH", 10**6)


@pytest.fixture
def direct(llama: Any, tokenizer: Any) -> LanguageModel:
    """The same network without a server between."""
    return Batched(TransformersBackend(llama, tokenizer, Raw(Tagged()), name=TINY))


@pytest.fixture
def serve(direct: LanguageModel, tokenizer: Any) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(offer: Offer | None = None, **how: Any) -> Server:
            server = Server(Api(direct, tokenizer, TINY, offer or Offer()), **how)
            return stack.enter_context(serving(server))

        yield start


def opened(server: Server, **settings: Any) -> Any:
    return load_model(SPEC, replace(FAST, base_url=server.url, **settings))


_TRIED: dict[type, Features] = {}


class TriedOnce(LanguageModelConformance):
    """The first test of a class tries out what its server can do, in some 35 requests; it is the same for the others."""

    @pytest.fixture(autouse=True)
    def tried_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = gnothi_openai.trial

        def trial(*given: Any) -> Features:
            if type(self) not in _TRIED:
                _TRIED[type(self)] = real(*given)
            return _TRIED[type(self)]

        monkeypatch.setattr(gnothi_openai, "trial", trial)


class TestChatWithEverything(TriedOnce):
    @pytest_asyncio.fixture
    async def model(self, serve: Serve) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = opened(serve(), prefill="assistant")
        assert model.metadata["endpoint"] == "chat"
        assert (model.capabilities.logprobs, model.capabilities.scoring) == (True, False)
        yield model
        await model.aclose()


class TestCompletions(TriedOnce):
    @pytest_asyncio.fixture
    async def model(self, serve: Serve) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = opened(serve(Offer(chat=False)), renderer="tagged")
        assert model.metadata["endpoint"] == "completions"
        assert (model.capabilities.logprobs, model.capabilities.scoring) == (True, True)
        yield model
        await model.aclose()


def test_an_echo_with_wrong_numbers_is_not_used(serve: Serve) -> None:
    model = opened(serve(Offer(chat=False, shifted=True)), renderer="tagged")
    assert (model.capabilities.logprobs, model.capabilities.scoring) == (True, False)


class TestTextOnly(TriedOnce):
    @pytest_asyncio.fixture
    async def model(self, serve: Serve) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = opened(serve(TEXT_ONLY))
        assert (model.capabilities.logprobs, model.capabilities.scoring) == (False, False)
        assert model.metadata["answer_so_far"] == "told"
        yield model
        await model.aclose()


# --- the same as without a server ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_texts_and_numbers_are_those_of_the_network(serve: Serve, direct: LanguageModel, endpoint: Any) -> None:
    # None of these replies ends with a token that has no text, which the client leaves out.
    model, greedy = opened(serve(), endpoint=endpoint, renderer="tagged"), replace(GREEDY, max_tokens=6)
    for prompt in PROMPTS:
        there, here = await model.generate(prompt, greedy), await direct.generate(prompt, greedy)
        assert (there.text, there.finish) == (here.text, here.finish)
        assert [token.text for token in there.tokens] == [token.text for token in here.tokens]
        assert [token.logprob for token in there.tokens] == pytest.approx([token.logprob for token in here.tokens], abs=1e-5)
        assert (there.prompt_tokens, there.generated_tokens) == (here.prompt_tokens, here.generated_tokens)
        assert texts(await model.sample(prompt, 5, WARM)) == texts(await direct.sample(prompt, 5, WARM))
    await model.aclose()


async def test_echoed_scores_are_those_of_the_network(serve: Serve, direct: LanguageModel) -> None:
    model = opened(serve(), endpoint="completions", renderer="tagged")
    continuations = ["Yes", "w1 w2 w3", "", "w6 ."]
    for prompt in PROMPTS:
        there, here = await model.score(prompt, continuations), await direct.score(prompt, continuations)
        for one, other in zip(there, here, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
    await model.aclose()


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_choices_of_one_token_are_scored_by_the_likeliest(serve: Serve, direct: LanguageModel, endpoint: Any) -> None:
    model = opened(serve(), endpoint=endpoint, renderer="tagged", scoring="choice")
    assert model.capabilities.scoring
    yes, no, other = await model.score(PROMPTS[0], ["Yes", "No", "city"])
    here = await direct.score(PROMPTS[0], ["Yes", "No"])
    assert (yes.logprob, no.logprob) == pytest.approx((here[0].logprob, here[1].logprob), abs=1e-5)
    assert other.logprob <= min(yes.logprob, no.logprob)
    with refused(UsageError):
        await model.score(PROMPTS[0], ["a long answer"])
    await model.aclose()


# --- what servers lack ---------------------------------------------------------------------------------------------------


async def test_without_n_several_requests_give_different_samples(serve: Serve) -> None:
    for offer in (Offer(refuses=frozenset({"n"})), Offer(ignores=frozenset({"n"}))):
        server = serve(offer)
        model = opened(server)
        before = len(server.posts)
        few = await model.sample(PROMPTS[1], 3, WARM)
        found_out = len(server.posts) - before
        assert found_out == (4 if offer.refuses else 3)
        many = await model.sample(PROMPTS[1], 6, WARM)
        assert len(server.posts) - before - found_out == 6
        assert texts(many)[:3] == texts(few)
        assert len(set(texts(many))) > 1
        assert len({body["seed"] for body in server.posts[-6:]}) == 6
        assert "n" in model.metadata["without"]
        one = await model.sample(PROMPTS[1], 1, WARM)
        assert many.generations[0].prompt_tokens == 6 * one.generations[0].prompt_tokens
        await model.aclose()


async def test_a_further_group_of_samples_is_one_request_of_another_seed(serve: Serve) -> None:
    server = serve(Offer())
    model = opened(server)
    before = len(server.posts)
    first, more = await model.sample(PROMPTS[1], 4, WARM), await model.sample(PROMPTS[1], 4, replace(WARM, first=4))
    assert [body["n"] for body in server.posts[before:]] == [4, 4]
    assert len({body["seed"] for body in server.posts[before:]}) == 2
    assert texts(first) != texts(more)
    await model.aclose()


async def test_fields_that_a_server_refuses_are_left_out(serve: Serve, direct: LanguageModel) -> None:
    server = serve(Offer(refuses=frozenset({"max_tokens", "top_k", "stop", "seed", "logprobs"})))
    model = opened(server)
    assert model.metadata["without"] == "logprobs, max_tokens, seed, stop, top_k"
    assert "stop: Unsupported parameter: 'stop' is not supported with this model." in model.metadata["why"]
    assert not model.capabilities.logprobs
    whole = await model.generate(PROMPTS[0], GREEDY)
    assert whole.text == (await direct.generate(PROMPTS[0], GREEDY)).text
    stop = whole.text[3:5]
    stopped = await model.generate(PROMPTS[0], replace(GREEDY, stop=(stop,)))
    assert (stopped.text, stopped.finish) == (whole.text[: whole.text.index(stop)], "stop")
    assert server.posts[-1].keys() == {"model", "messages", "temperature", "max_completion_tokens"}
    await model.aclose()


async def test_more_stop_strings_than_the_api_takes(serve: Serve) -> None:
    server = serve()
    model = opened(server)
    whole = (await model.generate(PROMPTS[0], GREEDY)).text
    stopped = await model.generate(PROMPTS[0], replace(GREEDY, stop=("q1", "q2", "q3", "q4", whole[3:5])))
    assert len(server.posts[-1]["stop"]) == 4
    assert stopped.text == whole[: whole.index(whole[3:5])]
    await model.aclose()


async def test_a_reply_that_repeats_its_beginning_is_continued(serve: Serve, direct: LanguageModel) -> None:
    """A chat model that is told of its answer so far says it again, up to the first stop string in it."""
    prompt = PROMPTS[3]
    expected = await direct.generate(prompt, GREEDY)
    for offer in (TEXT_ONLY, Offer(owner="library", repeats=True)):
        model = opened(serve(offer))
        assert (await model.generate(prompt, GREEDY)).text.strip() == expected.text.strip()
        stopped = await model.generate(prompt, replace(GREEDY, stop=("is the",)))
        assert stopped.text.strip() == expected.text.strip().partition("is the")[0].strip()
        assert "".join(token.text for token in stopped.tokens) in ("", stopped.text)
        await model.aclose()


async def test_hidden_states_are_refused_and_greedy_samples_are_asked_for_once(serve: Serve) -> None:
    server = serve()
    model = opened(server)
    with refused(UsageError):
        await model.sample(PROMPTS[0], 2, WARM, [StateSpec()])
    before = len(server.posts)
    samples = await model.sample(PROMPTS[0], 4, GREEDY)
    assert len(set(texts(samples))) == 1
    assert len(server.posts) == before + 1
    await model.aclose()


async def test_what_the_settings_tell_is_not_tried_out(serve: Serve) -> None:
    server = serve()
    model = opened(server, endpoint="chat", logprobs="on", scoring="off", prefill="assistant")
    assert server.requests == []
    assert (await model.generate(PROMPTS[3], GREEDY)).tokens
    assert server.posts[0]["messages"][-1] == {"role": "assistant", "content": "w14 is the w15 ."}
    assert server.posts[0]["continue_final_message"] is True
    await model.aclose()


async def test_more_fields_and_fewer_by_setting(serve: Serve) -> None:
    server = serve()
    model = opened(server, extra='{"reasoning_effort": "low"}', leave_out=("seed", "top_k", "logprobs"))
    await model.sample(PROMPTS[0], 2, WARM)
    assert server.posts[-1]["reasoning_effort"] == "low"
    for body in server.posts:
        assert not {"seed", "top_k", "logprobs"} & body.keys()
    assert not model.capabilities.logprobs
    await model.aclose()


@pytest.mark.parametrize(
    "settings",
    [
        {"extra": "[1]"},
        {"extra": '{"headers": [{"Authorization": "Bearer sk-1"}]}'},
        {"leave_out": ("sed",)},
        {"concurrency": 0},
        {"timeout": 0.0},
        {"base_url": "somewhere"},
        {"price_in": -1.0},
    ],
)
def test_settings_that_cannot_be(settings: Any) -> None:
    with refused(UsageError):
        RemoteSettings(**settings)


@pytest.mark.parametrize(
    "extra", ['{"api_key": "sk-very-private"}', '{"api_key": "sk-very-private"', '{"user": "sk-very-private"}']
)
def test_a_key_among_the_settings_is_refused_and_not_repeated(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-private")
    with refused(UsageError) as raised:
        RemoteSettings(extra=extra)
    assert "private" not in str(raised.value)


def test_fields_that_only_sound_like_secrets_are_taken() -> None:
    extra = '{"prompt_cache_key": "a", "stop_token_ids": [1], "max_completion_tokens": 5, "token": ""}'
    assert RemoteSettings(extra=extra).more()["prompt_cache_key"] == "a"


@pytest.mark.parametrize("key", ["sk-very\nprivate", "sk-very\u00a0private", "sk-v\x00ery"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_repeated(key: str, serve: Serve) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", {**os.environ, "OPENAI_API_KEY": key})  # the real one takes no NUL
        with refused(UsageError) as raised:
            opened(serve())
    assert "very" not in str(raised.value)


async def test_an_address_that_cannot_be(serve: Serve) -> None:
    server = serve()
    server.url = "http://☃.invalid/v1"
    with refused(InvalidSetting):
        opened(server)


# --- what goes wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_fault_is_survived(serve: Serve, fault: Fault) -> None:
    server = serve(fault=lambda number: fault if number == 1 else None)
    # Where no reply comes, the clock ends it; on a machine that stands still also others, which are then asked for again.
    model = opened(server, **TOLD, **({"timeout": 0.5, "retries": 500} if fault == "timeout" else {}))
    assert (await model.generate(PROMPTS[0], GREEDY)).text
    assert server.faults[0] == fault
    await model.aclose()


async def test_a_reply_that_nobody_asked_for_answers_no_other_question(
    serve: Serve, direct: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes twice in one piece: what is left over must not be taken for the reply to the next request."""
    write = openai_server._write
    monkeypatch.setattr(openai_server, "_write", lambda writer, *given, **more: write(Doubling(writer), *given, **more))  # type: ignore[arg-type]
    model = opened(serve())
    found = [(await model.generate(prompt, GREEDY)).text for prompt in PROMPTS]
    await model.aclose()
    assert len(set(found)) > 1
    assert found == [(await direct.generate(prompt, GREEDY)).text for prompt in PROMPTS]


class Doubling:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, content: bytes) -> None:
        self._writer.write(2 * content)


@pytest.mark.parametrize("fault", ["500", "drop", "json", "deep", "long"])
async def test_a_server_that_goes_on_failing_is_reported(serve: Serve, fault: Fault) -> None:
    server = serve(fault=lambda _: fault)
    model = opened(server, **TOLD, retries=2)
    with refused(ModelUnavailable):
        await model.generate(PROMPTS[0], replace(GREEDY, max_tokens=12))
    assert len(server.posts) == 3
    await model.aclose()


async def test_retry_after_is_honoured_by_all_requests(serve: Serve) -> None:
    server = serve(fault=lambda number: "429 after" if number == 1 else None)
    model = opened(server, **TOLD)
    started = asyncio.get_running_loop().time()
    await model.generate(PROMPTS[0], GREEDY)
    assert asyncio.get_running_loop().time() - started >= 0.05
    await model.aclose()
    impatient = opened(serve(fault=lambda _: "429 after"), **TOLD, max_wait=0.01)
    with refused(ModelUnavailable):
        await impatient.generate(PROMPTS[0], GREEDY)
    await impatient.aclose()


async def test_no_more_requests_at_once_than_allowed(serve: Serve) -> None:
    server = serve()
    model = opened(server, concurrency=3)
    server.together = 3
    await gather(*(model.generate(prompt, replace(GREEDY, max_tokens=2)) for prompt in PROMPTS * 5))
    assert server.most_at_once == 3
    await model.aclose()


def test_nobody_there() -> None:
    with nobody() as url, refused(ModelUnavailable):
        load_model(SPEC, replace(FAST, base_url=url))


def test_a_model_that_the_server_lacks(serve: Serve) -> None:
    server = serve()
    with refused(ModelUnavailable):
        load_model("openai:other", replace(FAST, base_url=server.url))
    with refused(UsageError):
        load_model("openai: ", FAST)


def test_openai_wants_a_key() -> None:
    with refused(ModelUnavailable):
        load_model(SPEC, FAST)


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with refused(MissingDependency):
        load_model(SPEC, replace(FAST, base_url="http://127.0.0.1:9/v1"))


async def test_a_prompt_that_is_too_long(serve: Serve) -> None:
    model = opened(serve())
    long = replace(PROMPTS[0], question="w1 " * 300)
    results = await asyncio.gather(model.generate(long, GREEDY), model.generate(PROMPTS[0], GREEDY), return_exceptions=True)
    assert isinstance(results[0], PromptTooLong)
    assert "256" in str(results[0])
    assert "context=" not in results[0].message  # which is no setting of a server's model
    assert isinstance(results[1], Generation)
    await model.aclose()


# --- the key ---------------------------------------------------------------------------------------------------------------


SECRET = "sk-very-secret-0123456789"


async def test_the_key_goes_to_the_server_and_nowhere_else(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server = serve(key=SECRET)
    with caplog.at_level("DEBUG"):
        model = opened(server)
        assert (await model.generate(PROMPTS[0], GREEDY)).text
        assert server.requests[-1][2]["authorization"] == f"Bearer {SECRET}"
        server.key = "another"
        with refused(ModelUnavailable) as caught:
            await model.generate(PROMPTS[0], GREEDY)
        assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text
    assert SECRET not in repr(model.metadata) + repr(vars(FAST.located()) if hasattr(FAST, "__dict__") else FAST.located())
    await model.aclose()


def test_space_around_an_address_is_no_part_of_it() -> None:
    assert RemoteSettings(base_url=" http://host/v1/ \n").located().base_url == "http://host/v1"


@pytest.mark.parametrize("url", ["http://me:pass@host/v1", "https://host/v1?key=pass", "me:pass@host"])
def test_an_address_holds_no_secret(url: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        RemoteSettings(base_url=url)
    assert "pass@" not in str(caught.value)
    assert "key=pass" not in str(caught.value)


# --- many requests ---------------------------------------------------------------------------------------------------------


def by_chance(seed: int, share: float) -> Callable[[dict[str, Any]], Fault | None]:
    """Faults of a share of all tries: the same of each request's, in whatever order they arrive."""
    tries: Counter[str] = Counter()

    def fault(body: dict[str, Any]) -> Fault | None:
        tries[asked := key_of(body)] += 1
        chance = random.Random(f"{seed} {tries[asked]} {asked}")
        return chance.choice(FAULTS) if chance.random() < share else None

    return fault


def key_of(body: Any) -> str:
    return json.dumps(body, sort_keys=True)


NEVER = 40_000.0
"""Seconds for a reply that no clock counts."""
_asking: ContextVar[str] = ContextVar("_asking")


@pytest.fixture
def ends_when_told(monkeypatch: pytest.MonkeyPatch) -> Deadlines:
    """The time for a reply is over when the server says that it gives none, for that request alone; others have all day."""
    paid = Client._paid

    async def told(self: Client, path: str, body: Any, parse: Any) -> Any:
        _asking.set(key_of(body))
        return await paid(self, path, body, parse)

    monkeypatch.setattr(Client, "_paid", told)
    return Deadlines(monkeypatch, NEVER, lambda: _asking.get(""))


MANY = 300


async def ask_many(model: LanguageModel) -> list[Any]:
    decoding = Decoding(max_tokens=3)
    asked = [Prompt(Task("answer"), f"who is w{number % 40} and w{number // 40} ?") for number in range(MANY)]
    return await asyncio.gather(*(model.generate(prompt, decoding) for prompt in asked), return_exceptions=True)


@pytest.mark.slow
async def test_many_requests_with_a_third_of_faults(serve: Serve, direct: LanguageModel, ends_when_told: Deadlines) -> None:
    """All answered or reported, none lost, none doubled: each has the answer to its own prompt, or an error that says so."""
    server = serve(on_silence=lambda body: ends_when_told.pass_by(key_of(body)))
    budget = Budget()
    with spending(budget):
        model = opened(server, timeout=NEVER, concurrency=32)
    server.fault_of = by_chance(1, 0.3)
    there = await ask_many(model)
    here = await ask_many(direct)
    failed = [result for result in there if isinstance(result, Exception)]
    assert all(isinstance(error, ModelUnavailable) and "tried 7 times" in str(error) for error in failed)
    assert len(failed) <= 1
    for one, other in zip(there, here, strict=True):
        assert isinstance(one, Exception) or (one.text, one.prompt_tokens) == (other.text, other.prompt_tokens)
    faults = Counter(server.faults)
    assert set(faults) == set(FAULTS)
    assert 0.25 < len(server.faults) / len(server.posts) < 0.35
    charged = sum(read + written for read, written in server.api.charged)
    assert charged <= budget.tokens
    assert budget.tokens - budget.estimated_tokens == charged - server.unbilled
    await model.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["tokens", "cost"])
async def test_a_budget_holds_under_faults(serve: Serve, limit: str, ends_when_told: Deadlines) -> None:
    server = serve(on_silence=lambda body: ends_when_told.pass_by(key_of(body)))
    budget = Budget(max_tokens=5000) if limit == "tokens" else Budget(max_cost=0.012)
    with spending(budget):
        model = opened(server, timeout=NEVER, concurrency=32, price_in=1.0, price_out=20.0)
    server.fault_of = by_chance(2, 0.3)
    there = await ask_many(model)
    answered = [result for result in there if not isinstance(result, Exception)]
    stopped = [result for result in there if isinstance(result, BudgetSpent)]
    assert len(answered) > 50
    assert len(answered) + len(stopped) >= MANY - 1
    assert f"max_{limit}" in str(stopped[0])
    read, written = (sum(column) for column in zip(*server.api.charged, strict=True))
    if limit == "tokens":
        assert read + written <= budget.tokens <= 5000
    else:
        assert (read * 1.0 + written * 20.0) / 1e6 <= budget.cost <= 0.012
    assert math.isclose(budget.cost, (budget.prompt_tokens * 1.0 + budget.generated_tokens * 20.0) / 1e6)
    await model.aclose()
