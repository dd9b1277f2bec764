from __future__ import annotations

import asyncio
import random

import pytest

from gnothi.errors import BudgetSpent, InvalidSetting
from gnothi.models.remote.budget import Budget, Prices, current, spending
from tests.messages import refused

FREE = Prices()
PRICES = Prices(2.0, 10.0)


async def spend(budget: Budget, most: tuple[int, int], real: tuple[int, int] | None, prices: Prices = FREE) -> None:
    charge = await budget.reserve(*most, prices)
    try:
        await asyncio.sleep(0)
        if real is not None:
            charge.settle(*real)
    finally:
        budget.close(charge)


async def test_the_books() -> None:
    budget = Budget()
    await spend(budget, (100, 50), (80, 20), PRICES)
    await spend(budget, (10, 5), None, PRICES)
    assert budget.as_dict() == {
        "requests": 2,
        "prompt_tokens": 90,
        "generated_tokens": 25,
        "estimated_tokens": 15,
        "cost": pytest.approx((90 * 2 + 25 * 10) / 1e6),
    }
    assert budget.describe() == "2 requests, 90 prompt and 25 generated tokens (15 of them estimated), cost 0.0004"
    await spend(budget, (1, 1), (1, 1))
    assert budget.as_dict()["cost"] is None
    assert "cost" not in budget.describe()


@pytest.mark.parametrize("seed", range(5))
async def test_no_limit_is_passed_whatever_runs_at_once(seed: int) -> None:
    chance = random.Random(seed)
    budget = Budget(max_cost=0.01, max_tokens=3000)
    outcomes = await asyncio.gather(
        *(
            spend(
                budget, (most, 20), (chance.randint(0, most), chance.randint(0, 20)) if chance.random() < 0.8 else None, PRICES
            )
            for most in (chance.randint(1, 200) for _ in range(200))
        ),
        return_exceptions=True,
    )
    assert budget.tokens <= 3000
    assert budget.cost <= 0.01
    stopped = [outcome for outcome in outcomes if outcome is not None]
    assert stopped
    assert all(isinstance(outcome, BudgetSpent) for outcome in stopped)
    assert budget.requests == 200 - len(stopped)
    assert budget.tokens > 1500


async def test_what_does_not_fit_waits_for_what_is_under_way() -> None:
    budget = Budget(max_tokens=100)
    first = await budget.reserve(80, 0, FREE)
    second = asyncio.create_task(budget.reserve(50, 0, FREE))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not second.done()
    first.settle(20, 0)
    budget.close(first)
    charge = await second
    budget.close(charge)
    with refused(BudgetSpent):
        await budget.reserve(40, 0, FREE)
    with pytest.raises(BudgetSpent):  # once refused, all are: a run that stops does not go on with its smaller requests
        await budget.reserve(1, 0, FREE)


async def test_one_that_waits_may_be_cancelled() -> None:
    budget = Budget(max_tokens=100)
    first = await budget.reserve(80, 0, FREE)
    waiting = asyncio.create_task(budget.reserve(50, 0, FREE))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    first.settle(10, 0)
    budget.close(first)
    budget.close(await budget.reserve(90, 0, FREE))
    assert budget.tokens == 100


async def test_the_cost_is_named() -> None:
    budget = Budget(max_cost=0.5)
    with refused(BudgetSpent):
        await budget.reserve(1_000_000, 0, PRICES)


def test_prices_are_needed_for_a_cost() -> None:
    Budget(max_cost=1).check(PRICES)
    Budget(max_tokens=1).check(FREE)
    with refused(InvalidSetting):
        Budget(max_cost=1).check(Prices(1.0, None))


def test_models_opened_inside_share_it() -> None:
    with spending(Budget(max_tokens=5)) as budget:
        assert current() is budget
    assert not current().limited
