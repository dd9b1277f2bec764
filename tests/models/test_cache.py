"""Replies that are kept: the same to the last bit, for exactly the same request, and never an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.events import ModelCall, Usage, record
from gnothi.models import ModelSettings, load_model
from gnothi.models.cache import Cached, keep_local
from gnothi.models.settings import UseCache
from gnothi.models.store import Store
from gnothi.models.wrappers import Seeded, Traced, Wrapper
from gnothi.seeding import question_scope
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Decoding, Prompt, StateSpec, Task

PROMPT = Prompt(Task("answer"), "Who wrote Emma ?")
GREEDY, WARM = Decoding(), Decoding(temperature=1.0, seed=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, 2**20, pytest.fail)
    yield store
    store.close()


@pytest.fixture
def model() -> Scripted:
    return Scripted(lambda prompt: [Reply(f"{prompt.question} é", (-0.1, -float("inf")), doubt=1.0), Reply("B", doubt=0.5)])


def cached(model: Scripted, store: Store, identity: str = "m") -> Cached:
    return Cached(model, store, {"model": identity}, repr)


async def test_everything_comes_back_as_it_was(model: Scripted, store: Store) -> None:
    wrapped = cached(model, store)

    async def all_calls() -> list[Any]:
        samples = await wrapped.sample(PROMPT, 3, WARM, [StateSpec(1, "residual"), StateSpec(2)])
        looked = await wrapped.states(PROMPT, [StateSpec(1, "ffn", "predicting"), StateSpec(3, "ffn", "predicting")])
        return [
            looked.prompt_tokens,
            (await wrapped.states(PROMPT, [])).states,
            [(one.dtype, one.shape, one.tobytes(), one.flags.writeable) for one in looked.states],
            await wrapped.generate(PROMPT, GREEDY),
            samples.generations,
            [(one.dtype, one.shape, one.tobytes(), one.flags.writeable) for one in samples.states],
            (await wrapped.sample(PROMPT, 3, WARM)).states,
            await wrapped.score(PROMPT, ["Yes", "No way", ""]),
        ]

    first = await all_calls()
    assert len(model.prompts) == 6
    assert await all_calls() == first
    assert len(model.prompts) == 6
    assert [one[0] for one in first[2]] == [one[0] for one in first[5]] == [np.float32] * 2


async def test_any_difference_is_another_request(model: Scripted, store: Store) -> None:
    wrapped = cached(model, store)
    other = cached(model, store, "another model")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: wrapped.sample(PROMPT, 3, WARM),
        lambda: wrapped.sample(PROMPT, 4, WARM),
        lambda: wrapped.sample(PROMPT, 3, replace(WARM, seed=4)),
        lambda: wrapped.sample(PROMPT, 3, replace(WARM, seed=None)),
        lambda: wrapped.sample(PROMPT, 3, replace(WARM, stop=("x",))),
        lambda: wrapped.sample(PROMPT, 3, replace(WARM, stop=("x", "y"))),
        lambda: wrapped.sample(PROMPT, 3, replace(WARM, top_p=0.5)),
        lambda: wrapped.sample(PROMPT, 3, WARM, [StateSpec()]),
        lambda: wrapped.sample(PROMPT, 3, WARM, [StateSpec(2)]),
        lambda: wrapped.states(PROMPT, [StateSpec(2, "ffn", "predicting")]),
        lambda: wrapped.states(PROMPT, [StateSpec(2, "residual", "predicting")]),
        lambda: wrapped.sample(replace(PROMPT, answer_so_far="x"), 3, WARM),
        lambda: wrapped.generate(PROMPT, WARM),
        lambda: wrapped.score(PROMPT, ["a", "b"]),
        lambda: wrapped.score(PROMPT, ["b", "a"]),
        lambda: other.sample(PROMPT, 3, WARM),
    ]
    for number, call in enumerate(calls, start=1):
        await call()
        assert len(model.prompts) == number
    for call in calls:
        await call()
    assert len(model.prompts) == len(calls)


async def test_errors_are_not_kept(store: Store) -> None:
    said: list[str] = []

    def script(_: Prompt) -> str:
        if not said:
            said.append("failed")
            raise RuntimeError("out of order")
        return "fine"

    wrapped = cached(Scripted(script), store)
    with pytest.raises(RuntimeError):
        await wrapped.generate(PROMPT, GREEDY)
    assert (await wrapped.generate(PROMPT, GREEDY)).text == "fine"
    assert store.info().entries == 1


@pytest.mark.parametrize("value", [b"", b"\0\0\0\5hello", b"\0\0\0\1", b"x" * 50])
async def test_a_damaged_entry_is_asked_for_again(model: Scripted, store: Store, value: bytes) -> None:
    wrapped = cached(model, store)
    expected = await wrapped.generate(PROMPT, GREEDY)
    (key,) = store._database.execute("SELECT key FROM calls").fetchone()  # type: ignore[union-attr]
    store.put(key, value)
    assert await wrapped.generate(PROMPT, GREEDY) == expected
    assert len(model.prompts) == 2
    assert await wrapped.generate(PROMPT, GREEDY) == expected
    assert len(model.prompts) == 2


async def test_events_tell_kept_replies_from_new_ones(model: Scripted, store: Store) -> None:
    traced = Traced(Seeded(cached(model, store)))
    with record() as events, question_scope(0, "q"):
        for _ in range(2):
            await traced.sample(PROMPT, 3, replace(WARM, seed=None))
            await traced.generate(PROMPT, GREEDY)
            await traced.score(PROMPT, ["Yes"])
    calls = [event for event in events if isinstance(event, ModelCall)]
    assert [call.cached for call in calls] == [False] * 3 + [True] * 3
    assert [replace(call, seconds=0, cached=False) for call in calls[:3]] == [
        replace(call, seconds=0, cached=False) for call in calls[3:]
    ]
    usage = Usage.of(events)
    assert (usage.model_calls, usage.cached_calls) == (6, 3)
    with record() as events, question_scope(1, "q"):
        await traced.sample(PROMPT, 3, replace(WARM, seed=None))
    assert Usage.of(events).cached_calls == 0


async def test_a_model_in_this_process_keeps_its_calls_only_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llama: Any, tokenizer: Any
) -> None:
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    llama.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    prompt = Prompt(Task("answer"), "who is w1 ?")
    found: list[tuple[object, ...]] = []
    uses: tuple[UseCache, ...] = ("auto", "on", "on")
    for cache in uses:
        model = load_model(str(folder), ModelSettings(device="cpu", cache=cache))
        with record() as events:
            samples = await model.sample(prompt, 3, Decoding(max_tokens=5, temperature=1.0), [StateSpec()])
        found.append((samples.generations, samples.states[0].tobytes(), Usage.of(events).cached_calls))
        await model.aclose()
    assert found[0] == found[1]
    assert found[2] == (*found[0][:2], 1)


@pytest.mark.parametrize("commit", [None, "c0ffee"])
async def test_of_an_adapter_its_own_files_count_beside_the_version_of_its_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str | None
) -> None:
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "kept"))
    asked: list[Prompt] = []
    model = Wrapper(Scripted(lambda prompt: asked.append(prompt) or [Reply("A")]))  # type: ignore[func-returns-value]
    for weights in ("one", "one", "two"):
        (tmp_path / "config.json").write_text(weights)
        kept = keep_local(model, ModelSettings(cache="on"), str(tmp_path), commit, repr)
        await kept.generate(PROMPT, GREEDY)
        await kept.aclose()
    assert len(asked) == 2
