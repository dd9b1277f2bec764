"""States of prompts that nobody continues: how they are read. The numbers are the conformance suite's matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from gnothi.errors import ModelUnavailable
from gnothi.models.batched import Continue, Look, Request, Result
from gnothi.models.engine.passes import Network
from gnothi.models.engine.states import Captured
from gnothi.models.rendering import Tagged
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS
from gnothi.types import Passage, Prompt, PromptStates, Samples, StateSpec, Task
from tests.models.tiny import backend_of

pytestmark = pytest.mark.usefixtures("one_trial")

PLACES = (StateSpec(1, "residual", "predicting"), StateSpec(0, "ffn", "predicting"))
LOOKS: list[Request] = [Look(prompt, PLACES) for prompt in PROMPTS]


@pytest.fixture(params=["repeated", "forked"])
def build(request: pytest.FixtureRequest, llama: Any, tokenizer: Any) -> Callable[..., TransformersBackend]:
    def make(**settings: Any) -> TransformersBackend:
        chosen = ModelSettings(attention=request.param, **settings)
        return TransformersBackend(llama, tokenizer, Tagged(), name="tiny", settings=chosen)

    return make


def seen(results: Sequence[Result | Exception]) -> list[np.ndarray]:
    for result in results:
        assert isinstance(result, PromptStates), result
    return [np.stack(result.states) for result in results if isinstance(result, PromptStates)]


def same(results: Sequence[Result | Exception], expected: Sequence[np.ndarray]) -> None:
    for found, wanted in zip(seen(results), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)


class Passes:
    """Counts the rows that each pass for states alone reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int = 10**9, error: Exception | None = None) -> None:
        self.rows: list[int] = []
        original = Network.ends

        def ends(network: Network, prompts: Sequence[Sequence[int]], tokens: int) -> Iterator[tuple[list[int], Captured]]:
            if len(prompts) > most and error is not None:
                raise error
            for places, states in original(network, prompts, tokens):
                self.rows.append(len(places))
                yield places, states

        monkeypatch.setattr(Network, "ends", ends)


def test_prompts_are_read_together_each_once(
    build: Callable[..., TransformersBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = seen([one for look in LOOKS for one in build().run([look])])
    backend = build(prefix_cache_mb=0)
    passes = Passes(monkeypatch)
    same(backend.run(LOOKS * 2), expected * 2)
    assert passes.rows == [len(PROMPTS)]


def test_a_prompt_that_is_continued_is_not_read_twice(
    build: Callable[..., TransformersBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = seen(build().run(LOOKS))
    backend = build()
    passes = Passes(monkeypatch)
    drafts, looks = [Continue(prompt, 1, GREEDY) for prompt in PROMPTS], list(LOOKS)
    results = backend.run([*drafts, *looks])
    assert passes.rows == []
    assert all(isinstance(one, Samples) for one in results[: len(drafts)])
    same(results[len(drafts) :], expected)


def test_long_prompts_that_begin_alike_share_their_beginning(
    llama: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passage = Passage("p", "w10 is the city of w11 . " * 20, "w12")
    looks: list[Request] = [Look(Prompt(Task("answer"), f"who is w{n} ?", (passage,)), PLACES) for n in range(6)]
    apart = backend_of(llama, tokenizer, prefix_cache_mb=0)
    expected = seen(apart.run(looks))
    backend = backend_of(llama, tokenizer)
    passes = Passes(monkeypatch)
    same(backend.run(looks), expected)
    same(backend.run(looks), expected)
    assert passes.rows == []
    assert backend.statistics["reused_tokens"] > 9 * 100
    assert backend._engine.path.cached_tokens == 0


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("x"), RuntimeError("can't allocate memory: you tried"), MemoryError()]
)
def test_running_out_of_memory_halves_what_is_read_at_once(
    build: Callable[..., TransformersBackend], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = seen(build().run(LOOKS))
    first, second, third = build(prefix_cache_mb=0), build(prefix_cache_mb=0), build()
    passes = Passes(monkeypatch, most=1, error=error)
    same(first.run(LOOKS), expected)
    assert passes.rows == [1] * len(LOOKS)
    Passes(monkeypatch, most=0, error=error)
    for result in second.run(LOOKS):
        assert isinstance(result, ModelUnavailable)
        assert "out of memory: the reading of a prompt of" in str(result)
    # Beside a continuation of its own it needs no pass of its own.
    results = third.run([Continue(PROMPTS[0], 1, GREEDY), LOOKS[0]])
    same(results[1:], expected[:1])


def test_what_does_not_fit_beside_a_continuation_fails_with_it(
    build: Callable[..., TransformersBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = build()

    def full(_: Any) -> Any:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(backend._engine._path, "admit", full)
    results = backend.run([Continue(PROMPTS[0], 1, GREEDY), LOOKS[0]])
    assert all(isinstance(one, ModelUnavailable) for one in results)
