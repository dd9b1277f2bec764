"""Admission, memory, cancellation and sharing in the decode loop. The numbers are the conformance suite's matter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnothi.concurrency import Inbox, Job, hurried
from gnothi.errors import ModelUnavailable
from gnothi.models.batched import Attend, Batched, Continue, Request, Result, Score
from gnothi.models.engine.engine import regroup
from gnothi.models.rendering import Tagged
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, WARM
from gnothi.types import Decoding, Samples, StateSpec
from tests.messages import refused
from tests.models.tiny import backend_of, build_deep

pytestmark = pytest.mark.usefixtures("one_trial")

LONG = replace(WARM, max_tokens=18)
SEVERAL = (StateSpec(), StateSpec(0, "residual"), StateSpec(None, "residual", "predicting"))
REQUESTS: list[Request] = [
    Continue(prompt, n, decoding, hidden)
    for prompt in PROMPTS
    for n, decoding, hidden in [(1, GREEDY, ()), (5, WARM, SEVERAL), (2, LONG, ())]
]


@pytest.fixture(params=["repeated", "forked"])
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def build(llama: Any, tokenizer: Any, path: str) -> Callable[..., TransformersBackend]:
    def make(**settings: Any) -> TransformersBackend:
        chosen = ModelSettings(attention=path, **settings)  # type: ignore[arg-type]
        return TransformersBackend(llama, tokenizer, Tagged(), name="tiny", settings=chosen)

    return make


def said(results: Sequence[Result | Exception]) -> list[list[str]]:
    for result in results:
        assert isinstance(result, Samples), result
    return [[one.text for one in result.generations] for result in results if isinstance(result, Samples)]


@pytest.fixture(scope="module")
def expected(llama: Any, tokenizer: Any) -> list[list[str]]:
    backend = backend_of(llama, tokenizer, attention="repeated")
    return [said(backend.run([request]))[0] for request in REQUESTS]


@pytest.mark.parametrize("settings", [{}, {"max_rows": 3}, {"max_rows": 1}, {"prefill_tokens": 1}, {"cache_mb": 0}])
def test_limits_change_nothing_but_the_batches(
    build: Callable[..., TransformersBackend], expected: list[list[str]], settings: dict[str, int]
) -> None:
    count = 5 if settings.get("max_rows") == 1 else len(REQUESTS)
    assert said(build(**settings).run(REQUESTS[:count])) == expected[:count]


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("step", torch.OutOfMemoryError("x")),
        ("step", RuntimeError("can't allocate memory: you tried")),
        ("admit", MemoryError()),
    ],
)
def test_running_out_of_memory_halves_the_batch_and_goes_on(
    build: Callable[..., TransformersBackend],
    expected: list[list[str]],
    error: Exception,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = build()
    path = backend._engine._path
    original, sizes, most = getattr(path, where), [], 8 if where == "step" else 1

    def limited(*arguments: Any) -> Any:
        rows = len(arguments[0])
        sizes.append(rows)
        if rows > most or (where == "step" and len(sizes) == 9):
            raise error
        return original(*arguments)

    monkeypatch.setattr(path, where, limited)
    assert said(backend.run(REQUESTS)) == expected
    assert max(sizes) > most
    assert backend._engine.limits.rows <= 16


def test_one_row_that_does_not_fit_fails_alone_with_advice(
    build: Callable[..., TransformersBackend], expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = build()
    path = backend._engine._path
    original = path.admit

    def limited(prompts: Sequence[tuple[int, ...]]) -> Any:
        if any(len(prompt) > 40 for prompt in prompts):
            raise torch.OutOfMemoryError
        return original(prompts)

    monkeypatch.setattr(path, "admit", limited)
    numbers = (1, 6, 7, 8, 9)
    results = backend.run([REQUESTS[number] for number in numbers])
    assert {REQUESTS[number].prompt for number in numbers} == {PROMPTS[0], PROMPTS[2], PROMPTS[3]}
    for number, result in zip(numbers, results, strict=True):
        if REQUESTS[number].prompt == PROMPTS[2]:
            assert isinstance(result, ModelUnavailable)
            assert "out of memory" in str(result)
        else:
            assert said([result]) == [expected[number]]


def test_other_errors_reach_everyone_and_leave_a_working_backend(
    build: Callable[..., TransformersBackend], expected: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = build()

    def broken(_: Any) -> Any:
        raise RuntimeError("device lost")

    async def ask() -> list[Any]:
        model = Batched(backend)
        calls = [model.sample(PROMPTS[0], 7, WARM, [StateSpec()]), model.generate(PROMPTS[1], GREEDY)]
        with monkeypatch.context() as patched:
            patched.setattr(backend._engine._path, "step", broken)
            failed = await asyncio.gather(*calls, return_exceptions=True)
        return [*failed, await model.generate(PROMPTS[0], GREEDY)]

    first, second, after = asyncio.run(ask())
    assert "device lost" in str(first)
    assert "device lost" in str(second)
    assert after.text == expected[0][0]


class Arrivals(Inbox[Request, Result]):
    """An inbox where another request arrives at every look into it."""

    def __init__(self, requests: Sequence[Request]) -> None:
        super().__init__()
        self.coming = list(requests)
        self.jobs: list[Job[Request, Result]] = []

    def take(self) -> list[Job[Request, Result]]:
        if self.coming:
            self.jobs.append(self.put(self.coming.pop(0)))
        return super().take()


def test_newcomers_join_the_running_batch(
    build: Callable[..., TransformersBackend], expected: list[list[str]], path: str
) -> None:
    backend = build()
    inbox = Arrivals(REQUESTS)
    backend.serve(inbox)
    assert said([job.future.result() for job in inbox.jobs]) == expected
    if path == "forked":
        # One arrives per step, and the longest takes 18: without joining there would be many times as many steps.
        assert backend._engine.steps <= len(REQUESTS) + 19
    assert not backend._engine.busy


class Hurrying(Arrivals):
    """An inbox where one request waits already, and another, which is hurried, arrives at every look into it."""

    def __init__(self, calm: Request, requests: Sequence[Request]) -> None:
        super().__init__(requests)
        self.calm = self.put(calm)

    def take(self) -> list[Job[Request, Result]]:
        with hurried():
            return super().take()


def test_a_hurried_request_is_answered_before_what_came_earlier(build: Callable[..., TransformersBackend]) -> None:
    backend, inbox = build(), Hurrying(Continue(PROMPTS[0], 3, WARM), [Continue(PROMPTS[1], 3, WARM)])
    before: list[bool] = []
    inbox.calm.future.add_done_callback(lambda _: before.append(inbox.jobs[0].settled))
    backend.serve(inbox)
    assert before == [True]


def test_what_is_not_hurried_waits_a_limited_number_of_steps(build: Callable[..., TransformersBackend], path: str) -> None:
    backend = build()
    inbox = Hurrying(Continue(PROMPTS[0], 1, GREEDY), [Continue(PROMPTS[1], 1, LONG)] * 30)
    ended: list[int] = []
    inbox.calm.future.add_done_callback(lambda _: ended.append(backend._engine.steps))
    backend.serve(inbox)
    assert len(said([job.future.result() for job in inbox.jobs])) == 30
    if path == "forked":
        assert 16 <= ended[0] <= 16 + GREEDY.max_tokens


def test_a_cancelled_request_leaves_the_batch_at_once(
    build: Callable[..., TransformersBackend], expected: list[list[str]]
) -> None:
    backend = build()
    doomed = Continue(PROMPTS[3], 50, replace(LONG, max_tokens=100))

    class Cancelling(Arrivals):
        looks = 0

        def take(self) -> list[Job[Request, Result]]:
            self.looks += 1
            if self.looks == 5:
                self.jobs[0].future.cancel()
            return super().take()

    inbox = Cancelling([doomed, REQUESTS[0]])
    backend.serve(inbox)
    assert inbox.jobs[0].future.cancelled()
    assert said([inbox.jobs[1].future.result()]) == [expected[0]]
    assert backend._engine.steps < 40


def prefills(backend: TransformersBackend, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many prompts each prefill from now on reads."""
    network, read = backend._network, []
    original = network.prefill

    def counting(prompts: Sequence[Sequence[int]], **options: Any) -> Any:
        read.append(len(prompts))
        return original(prompts, **options)

    monkeypatch.setattr(network, "prefill", counting)
    return read


def test_requests_for_one_prompt_share_its_prefill(
    build: Callable[..., TransformersBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = build()
    read = prefills(backend, monkeypatch)
    sampled = Continue(PROMPTS[0], 20, WARM, (StateSpec(),))
    backend.run([Continue(PROMPTS[0], 1, GREEDY), sampled, Continue(PROMPTS[1], 2, WARM)])
    assert sum(read) == 2


def test_a_prompt_that_is_being_read_is_not_read_again(llama: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_of(llama, tokenizer, attention="forked")
    read = prefills(backend, monkeypatch)
    late = [Continue(PROMPTS[0], 3, LONG), Continue(PROMPTS[0], 2, WARM), Continue(PROMPTS[0], 2, WARM, (StateSpec(),))]
    inbox = Arrivals(late)
    backend.serve(inbox)
    assert sum(read) == 1
    assert [len(result.generations) for job in inbox.jobs if isinstance(result := job.future.result(), Samples)] == [3, 2, 2]


def test_an_idle_model_holds_no_keys_and_values(build: Callable[..., TransformersBackend]) -> None:
    backend = build()
    backend.run(REQUESTS)
    assert len(backend._engine._rows) == 0
    cached = vars(backend._engine._path)
    assert not any(cached.get(name) for name in ("_running", "_pools", "_where", "_keys", "_values"))


def test_numbers_that_are_not_finite_are_an_error_with_advice(tokenizer: Any) -> None:
    model = build_deep("llama")
    with torch.no_grad():
        model.lm_head.weight[5] = float("nan")
    backend = backend_of(model, tokenizer, attention="repeated")
    asked: list[Request] = [
        Continue(PROMPTS[0], 1, GREEDY),
        Continue(PROMPTS[0], 3, WARM),
        Score(PROMPTS[0], ("w1",)),
        Score(PROMPTS[0], ("w1 w2", "w3")),
        Attend(PROMPTS[0], "w1 w2"),
    ]
    for request in asked:
        (result,) = backend.run([request])
        with refused(ModelUnavailable):
            raise result if isinstance(result, Exception) else AssertionError(result)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40))
def test_samples_stay_together_as_long_as_they_say_the_same(samples: list[tuple[int, int]]) -> None:
    branch, feed = (np.array(column) for column in zip(*samples, strict=True))
    order, after = regroup(branch, feed, 10)
    assert set(after) == set(range(len(order)))
    assert (order[after] == branch).all()
    assert len(order) == len(set(samples))
    for one, first in zip(samples, after, strict=True):
        for other, second in zip(samples, after, strict=True):
            assert (one == other) == (first == second)
    # A branch that goes on moves only when its place is beyond the new end.
    for parent in set(branch.tolist()):
        assert parent in np.flatnonzero(order == parent) or parent >= len(order)


def test_samples_that_say_the_same_cost_one_row(llama: Any, tokenizer: Any) -> None:
    backend = backend_of(llama, tokenizer)
    # Nearly greedy: all of them follow the likeliest tokens.
    sure = Decoding(max_tokens=12, temperature=1e-3, seed=4)
    (alone,) = backend.run([Continue(PROMPTS[0], 1, Decoding(max_tokens=12), (StateSpec(),))])
    before = backend.statistics
    results = backend.run([Continue(PROMPTS[0], 20, sure, (StateSpec(),)), Continue(PROMPTS[0], 1, Decoding(max_tokens=12))])
    assert isinstance(alone, Samples)
    for result in results:
        assert isinstance(result, Samples)
        assert {one.text for one in result.generations} == {alone.generations[0].text}
        assert {one.tokens for one in result.generations} == {result.generations[0].tokens}
    after = backend.statistics
    rows, steps = after["fed_rows"] - before["fed_rows"], after["steps"] - before["steps"]
    assert steps >= 5
    # The greedy one and the samples are one row; at the end some wait for their state.
    assert rows <= steps + 1
    assert after["samples"] - before["samples"] >= 20 * (steps - 1)


def test_samples_part_and_are_what_they_would_be_alone(llama: Any, tokenizer: Any) -> None:
    backend = backend_of(llama, tokenizer)
    warm = Decoding(max_tokens=18, temperature=0.6, top_k=20, seed=9)
    (together,) = backend.run([Continue(PROMPTS[1], 6, warm, (StateSpec(),))])
    assert isinstance(together, Samples)
    texts = [one.text for one in together.generations]
    assert 1 < len({text[:4] for text in texts}) < 6
    backend._engine.limits.rows = 1
    (one_by_one,) = backend.run([Continue(PROMPTS[1], 6, warm, (StateSpec(),))])
    assert isinstance(one_by_one, Samples)
    assert [one.text for one in one_by_one.generations] == texts
    np.testing.assert_allclose(one_by_one.states[0], together.states[0], atol=1e-4)
