from __future__ import annotations

import asyncio

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.servers.patience import Passing, Patience


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)


class Attempt:
    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures, self.tries, self.error = failures, 0, error or Passing("it is starting")

    async def __call__(self) -> str:
        self.tries += 1
        if self.tries <= self.failures:
            raise self.error
        return "found"


async def test_what_passes_is_tried_again() -> None:
    attempt = Attempt(3)
    assert await Patience(60, "it").persist(attempt) == "found"
    assert attempt.tries == 4


async def test_what_does_not_pass_is_raised_at_once() -> None:
    attempt = Attempt(1, ValueError("no such column"))
    with pytest.raises(ValueError, match="no such column"):
        await Patience(60, "it").persist(attempt)
    assert attempt.tries == 1


async def test_all_who_ask_wait_together_and_later_ones_no_more() -> None:
    patience = Patience(0.3, "the server")
    outcomes = await asyncio.gather(*(patience.persist(Attempt(10**6)) for _ in range(5)), return_exceptions=True)
    assert [type(one) for one in outcomes] == [IndexUnavailable] * 5
    assert "it is starting" in str(outcomes[0])
    with pytest.raises(IndexUnavailable, match="patience"):
        patience.check()
    late = Attempt(1)
    with pytest.raises(IndexUnavailable):
        await patience.persist(late)
    assert late.tries == 1
    assert await patience.persist(Attempt(0)) == "found"
    patience.check()
    assert await patience.persist(Attempt(1)) == "found"  # patient again


async def test_a_server_that_says_when_is_asked_then() -> None:
    with pytest.raises(IndexUnavailable, match="busy"):
        await Patience(5, "it").persist(Attempt(1, Passing("busy", wait=60)))


def test_without_an_event_loop_it_is_as_patient() -> None:
    patience, tries = Patience(0.3, "the server"), iter([True, True, False])

    def attempt(failing: bool | None = None) -> str:
        if next(tries) if failing is None else failing:
            raise Passing("it is starting")
        return "found"

    assert patience.persist_blocking(attempt) == "found"
    with pytest.raises(IndexUnavailable, match="it is starting"):
        patience.persist_blocking(lambda: attempt(True))
    assert patience.persist_blocking(lambda: attempt(False)) == "found"
