from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, ModelUnavailable, PromptTooLong
from gnothi.models.batched import Batched, Continue, Request, Result, Score
from gnothi.types import Capabilities, ContinuationScore, Decoding, Generation, Profile, Prompt, Samples, StateSpec, Task
from tests.messages import refused

PROMPT = Prompt(Task("answer"), "q")


class Echo:
    """A backend without continuous admission: says the question; refuses long ones."""

    name = "echo"
    capabilities = Capabilities(scoring=True)
    profile = Profile(parameters=7)
    metadata: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.batches: list[Sequence[Request]] = []
        self.closed = 0

    def run(self, batch: Sequence[Request]) -> list[Result | Exception]:
        self.batches.append(batch)
        return [self._answer(request) for request in batch]

    def close(self) -> None:
        self.closed += 1

    def _answer(self, request: Request) -> Result | Exception:
        if len(request.prompt.question) > 10:
            return PromptTooLong("echo", len(request.prompt.question), 10)
        if isinstance(request, Score):
            return tuple(ContinuationScore(text, (-1.0,)) for text in request.continuations)
        assert isinstance(request, Continue)
        return Samples(tuple(Generation(f"{request.prompt.question}{i}") for i in range(request.n)))


async def test_calls_become_requests_and_bad_ones_fail_alone() -> None:
    backend = Echo()
    model = Batched(backend)
    decoding, spec = Decoding(temperature=1.0), (StateSpec(3), StateSpec(1))
    generation, samples, scores = await gather(
        model.generate(PROMPT, Decoding()), model.sample(PROMPT, 2, decoding, spec), model.score(PROMPT, ["a"])
    )
    assert isinstance(generation, Generation)
    assert generation.text == "q0"
    assert isinstance(samples, Samples)
    assert [one.text for one in samples.generations] == ["q0", "q1"]
    assert scores == (ContinuationScore("a", (-1.0,)),)
    assert model.profile == backend.profile
    requests = [request for batch in backend.batches for request in batch]
    assert set(requests) == {Continue(PROMPT, 1, Decoding()), Continue(PROMPT, 2, decoding, spec), Score(PROMPT, ("a",))}
    with pytest.raises(PromptTooLong):
        await model.generate(Prompt(Task("answer"), "q" * 11), Decoding())
    await model.aclose()
    await model.aclose()
    assert backend.closed == 1


async def test_meaningless_requests_never_reach_the_backend() -> None:
    backend = Echo()
    model = Batched(backend)
    with refused(InvalidSetting):
        await model.sample(PROMPT, 0, Decoding())
    with refused(InvalidSetting):
        await model.generate(PROMPT, Decoding(max_tokens=0))
    assert backend.batches == []
    await model.aclose()


async def test_a_backend_is_made_on_the_thread_that_runs_it() -> None:
    threads: list[int] = []

    class Backend(Echo):
        def __init__(self) -> None:
            super().__init__()
            threads.append(threading.get_ident())

        def run(self, batch: Sequence[Request]) -> list[Result | Exception]:
            threads.append(threading.get_ident())
            return super().run(batch)

    model = Batched.opened(Backend, "echo")
    await model.generate(Prompt(Task("answer"), "a"), Decoding())
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()
    await model.aclose()


async def test_a_backend_that_cannot_be_made_says_so_to_the_caller() -> None:
    def fail() -> Echo:
        raise ModelUnavailable("no weights")

    with refused(ModelUnavailable):
        Batched.opened(fail, "echo")
