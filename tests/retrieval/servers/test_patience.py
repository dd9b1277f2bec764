"""How long is waited for a server that does not answer, by a clock of the tests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.servers.patience import Passing, Patience, Unreached
from tests.messages import refused


class Clock:
    """Time passes where somebody sleeps, and nowhere else."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def pause(self, seconds: float) -> None:
        """All who begin to sleep at a time sleep beside each other."""
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("gnothi.retrieval.servers.patience.time", made)
    monkeypatch.setattr("gnothi.retrieval.servers.patience.asyncio", SimpleNamespace(sleep=made.pause))
    return made


class Attempt:
    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures, self.tries, self.error = failures, 0, error or Passing("it is starting")

    async def __call__(self) -> str:
        self.tries += 1
        if self.tries <= self.failures:
            raise self.error
        return "found"


async def test_what_passes_is_tried_again(clock: Clock) -> None:
    attempt = Attempt(3)
    assert await Patience(60, "it").persist(attempt) == "found"
    assert attempt.tries == 4
    assert 1000 + 3.5 / 2 <= clock.now <= 1000 + 3.5  # waits of 0.5, 1 and 2 seconds, or down to half of each


async def test_what_does_not_pass_is_raised_at_once() -> None:
    attempt = Attempt(1, ValueError("no such column"))
    with refused(ValueError):
        await Patience(60, "it").persist(attempt)
    assert attempt.tries == 1


async def test_all_who_ask_wait_together_and_later_ones_no_more(clock: Clock) -> None:
    patience = Patience(30, "the server")
    attempts = [Attempt(10**6) for _ in range(5)]
    outcomes = await asyncio.gather(*map(patience.persist, attempts), return_exceptions=True)
    assert [type(one) for one in outcomes] == [IndexUnavailable] * 5
    assert "it is starting" in str(outcomes[0])
    assert clock.now <= 1030
    assert max(one.tries for one in attempts) >= 5  # patient
    with refused(IndexUnavailable):
        patience.check()
    clock.now += 1.0
    patience.check()  # what was seen a second ago is no news
    late = Attempt(1)
    with pytest.raises(IndexUnavailable):
        await patience.persist(late)
    assert late.tries == 1
    with refused(IndexUnavailable):
        patience.check()
    assert await patience.persist(Attempt(0)) == "found"
    patience.check()
    assert await patience.persist(Attempt(1)) == "found"  # patient again


async def test_a_server_that_says_when_is_asked_then() -> None:
    with refused(IndexUnavailable):
        await Patience(5, "it").persist(Attempt(1, Passing("busy", wait=60)))


def test_without_an_event_loop_it_is_as_patient(clock: Clock) -> None:
    patience, tries = Patience(30, "the server"), iter([True, True, False])

    def attempt(failing: bool | None = None) -> str:
        if next(tries) if failing is None else failing:
            raise Passing("it is starting")
        return "found"

    assert patience.persist_blocking(attempt) == "found"
    begun = clock.now
    with refused(IndexUnavailable):
        patience.persist_blocking(lambda: attempt(True))
    assert 0 < clock.now - begun <= 30
    assert patience.persist_blocking(lambda: attempt(False)) == "found"


async def test_nobody_waits_for_one_that_was_never_there(clock: Clock) -> None:
    patience = Patience(60, "the server", known=False)
    with refused(IndexUnavailable):
        await patience.persist(Attempt(1, Unreached("refused")))
    assert clock.now == 1000
    assert await patience.persist(Attempt(1)) == "found"  # it answers: somebody is there
    away = Attempt(3, Unreached("refused"))
    assert await patience.persist(away) == "found"  # now it is only away
    assert away.tries == 4
    assert await Patience(60, "one that was looked at before").persist(Attempt(1, Unreached("refused"))) == "found"
