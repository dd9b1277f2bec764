"""Prompts that are read in pieces, between steps of what runs: in turn, within bounds, and no further than somebody waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch

from gnothi.concurrency import Inbox, Job, in_turn
from gnothi.models.batched import Continue, Look, Request, Result, Score
from gnothi.models.engine.buffers import free_memory
from gnothi.models.engine.prompts import CachedPrompt, SuffixPool
from gnothi.models.settings import Attention
from gnothi.types import Decoding, Passage, Prompt, Samples, StateSpec, Task
from tests.models.tiny import ARCHITECTURES, backend_of, build_deep, build_model

pytestmark = pytest.mark.usefixtures("one_trial")

ANSWER = Task("answer")
SHORT = Prompt(ANSWER, "who is w1 ?")
PATHS: list[Attention] = ["forked", "repeated"]


def long_prompt(number: int, words: int = 150) -> Prompt:
    """Nothing that several of them share, from the first passage on."""
    text = " ".join(f"w{(number + place * (number + 2)) % 42}" for place in range(words))
    return Prompt(ANSWER, f"who is w{number} ?", (Passage(str(number), text),))


class Line(Inbox[Request, Result]):
    """Requests that are there from the start, with a look at the backend at each visit."""

    def __init__(self, requests: Sequence[Request], look: Callable[[Line], None]) -> None:
        super().__init__()
        self.jobs: list[Job[Request, Result]] = [self.put(request) for request in requests]
        self._look = look

    def take(self) -> list[Job[Request, Result]]:
        self._look(self)
        return super().take()


def samples_of(job: Job[Request, Result]) -> Samples:
    found = job.future.result()
    assert isinstance(found, Samples)
    return found


@pytest.mark.parametrize("attention", PATHS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pieces_give_what_the_whole_gives(architecture: str, attention: Attention, tokenizer: Any) -> None:
    """Prompts of several lengths, some with a common beginning, beside others that run."""
    shared = tuple(Passage(str(number), " ".join(f"w{(number * 3 + at) % 42}" for at in range(20))) for number in range(5))
    states = (StateSpec(), StateSpec(0, "residual", "predicting"))
    prompts = [SHORT, long_prompt(1), *(Prompt(ANSWER, f"where is w{end} ?", shared[: end + 2]) for end in range(4))]
    asked: list[Request] = [
        Continue(prompt, 3, Decoding(8, temperature=1.0, seed=number), states) for number, prompt in enumerate(prompts)
    ]
    asked += [Score(prompts[1], ("w1 w2", "w3")), Look(prompts[2], states[1:])]
    whole = backend_of(build_model(architecture), tokenizer, attention=attention).run(asked)
    backend = backend_of(build_model(architecture), tokenizer, attention=attention, prefill_tokens=32)
    for first, second in zip(whole, backend.run(asked), strict=True):
        if isinstance(first, Samples):
            assert isinstance(second, Samples)
            assert [one.text for one in first.generations] == [one.text for one in second.generations]
            for one, two in zip(first.generations, second.generations, strict=True):
                assert one.logprob == pytest.approx(two.logprob, abs=1e-4)
        if hasattr(first, "states"):
            assert hasattr(second, "states")
            for state, again in zip(first.states, second.states, strict=True):
                torch.testing.assert_close(torch.tensor(state), torch.tensor(again), atol=1e-3, rtol=1e-3)
        elif isinstance(first, tuple):
            assert isinstance(second, tuple)
            for score, other in zip(first, second, strict=True):
                assert score.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_what_runs_goes_on_while_a_long_prompt_is_read(tokenizer: Any, llama: Any) -> None:
    backend = backend_of(llama, tokenizer, prefill_tokens=16)
    first = Continue(SHORT, 1, Decoding(12, temperature=2.0, seed=1))
    seen: list[tuple[int, int]] = []  # steps so far, and tokens read so far
    inbox = Line(
        [first, Continue(long_prompt(1), 1, Decoding(4))],
        lambda _: seen.append((backend.statistics["steps"], backend.statistics["read_tokens"])),
    )
    backend.serve(inbox)
    read = [after - before for (_, before), (_, after) in pairwise(seen)]
    assert max(read) <= 2 * 16
    # The first one is done before the second one is read.
    length = samples_of(inbox.jobs[0]).generations[0].generated_tokens
    steps = [steps for steps, tokens in seen if tokens < seen[-1][1]]
    assert steps[-1] >= min(length - 1, 8)
    assert sum(map(bool, read)) >= 9


def test_a_first_answer_is_hardly_kept_waiting_by_what_comes_after(tokenizer: Any, llama: Any) -> None:
    """Until there is one, each step of it goes with a quarter of the usual piece; then pieces are whole."""
    backend = backend_of(llama, tokenizer, prefill_tokens=64)
    read = {"by the first answer": 0}

    def answered(_: object) -> None:
        read["by the first answer"] = backend.statistics["read_tokens"]

    seen: list[int] = []
    asked = [Continue(long_prompt(number), 1, Decoding(4)) for number in range(6)]
    for _ in range(2):  # also when the engine was idle between
        before = backend.statistics["read_tokens"]
        inbox = Line(asked, lambda _: seen.append(backend.statistics["read_tokens"]))
        inbox.jobs[0].future.add_done_callback(answered)
        backend.serve(inbox)
        own = max(samples_of(job).generations[0].prompt_tokens for job in inbox.jobs)
        assert read["by the first answer"] - before <= own + 5 * 64 / 4
        assert max(after - one for one, after in pairwise(seen)) >= 64
        seen.clear()
        asked = [Continue(long_prompt(number), 1, Decoding(4)) for number in range(10, 16)]


def test_turns_come_before_arrival(tokenizer: Any, llama: Any) -> None:
    """A later call of a question that was begun goes before the first calls of later ones."""
    backend = backend_of(llama, tokenizer, prefill_tokens=16)
    backend._engine.limits.questions = 1
    inbox: Inbox[Request, Result] = Inbox()
    done: list[str] = []

    def ask(name: str, prompt: Prompt) -> None:
        inbox.put(Continue(prompt, 1, Decoding(2))).future.add_done_callback(lambda _: done.append(name))

    with in_turn():
        with in_turn():
            ask("second", long_prompt(1))
            ask("second again", long_prompt(2))
        ask("first", long_prompt(3))
    with in_turn():
        ask("third", long_prompt(4))
    backend.serve(inbox)
    assert done == ["first", "second", "second again", "third"]


@pytest.mark.parametrize("attention", PATHS)
def test_a_prompt_that_nobody_waits_for_is_read_no_further(attention: Attention, tokenizer: Any, llama: Any) -> None:
    backend = backend_of(llama, tokenizer, attention=attention, prefill_tokens=16, prefix_cache_mb=0)
    given = [Continue(long_prompt(1), 1, Decoding(4)), Continue(SHORT, 1, Decoding(4))]

    def cancel(inbox: Line) -> None:
        if backend.statistics["read_tokens"] >= 16:
            inbox.jobs[0].future.cancel()

    inbox = Line(given, cancel)
    backend.serve(inbox)
    assert backend.statistics["read_tokens"] <= 16 + 16 + 8
    (alone,) = backend_of(llama, tokenizer).run([given[1]])
    assert isinstance(alone, Samples)
    assert samples_of(inbox.jobs[1]).generations[0].text == alone.generations[0].text
    assert not backend._engine.busy
    assert backend._engine.path.cached_tokens == 0


def test_a_closed_inbox_that_nobody_waits_for_ends_the_pass_that_runs(tokenizer: Any, llama: Any) -> None:
    """Between two layers, whatever a pass takes: an interrupt is heeded while a large model reads."""
    backend = backend_of(llama, tokenizer)
    inbox: Inbox[Request, Result] = Inbox()
    jobs = [inbox.put(Continue(long_prompt(1), 1, Decoding(4))), inbox.put(Score(long_prompt(2), ("w1", "w2")))]
    layers: list[int] = []

    def leave(*_: Any) -> None:
        layers.append(1)
        for job in jobs:
            job.future.cancel()
        inbox.close()

    handle = llama.model.layers[0].register_forward_hook(leave)
    backend.serve(inbox)
    handle.remove()
    assert len(layers) == 1
    assert not backend._engine.busy
    # Others are served as ever, by this backend or another one over the same model.
    for one in (backend, backend_of(llama, tokenizer)):
        assert isinstance(one.run([Continue(SHORT, 1, Decoding(4))])[0], Samples)


def test_no_more_is_held_than_there_is_room_for(tokenizer: Any) -> None:
    """Keys and values take 512 bytes a token: a megabyte is 2,048 tokens, prompts and what may follow them."""
    backend = backend_of(build_deep("llama"), tokenizer, cache_mb=1, prefill_tokens=64)
    engine = backend._engine
    assert engine.limits.tokens == 2048
    most = [0, 0]

    def look(_: Line) -> None:
        cached = engine.path.cached_tokens
        most[:] = max(most[0], cached + 20 * len(engine._rows)), max(most[1], len(engine._rows))

    inbox = Line([Continue(long_prompt(number), 1, Decoding(20, temperature=2.0, seed=number)) for number in range(14)], look)
    backend.serve(inbox)
    assert 0 < most[0] <= 2048
    assert most[1] > 1
    assert all(job.future.done() for job in inbox.jobs)


def test_free_memory_is_some_of_the_machines() -> None:
    assert 0 < free_memory() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_a_pool_gives_back_what_it_no_longer_needs() -> None:
    pool = SuffixPool(512)
    like = [torch.arange(12.0).view(2, 3, 2)]
    cached = [CachedPrompt((number,), number) for number in range(60)]
    for one in cached:
        pool.add(one)
        pool.append(one, [like[0] + one.number], like)
    assert pool.room == 60 * 512
    assert 60 <= len(pool.keys[0]) <= 60 + 60 // 8 + 4
    for one in cached[:57]:
        pool.drop(one)
    assert len(pool.keys[0]) < 30
    for one in cached[57:]:
        assert torch.equal(pool.keys[0][one.slot, :, :3], like[0] + one.number)
