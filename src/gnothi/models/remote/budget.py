"""What models behind an API may cost, and what they did.

Before a request is sent, the most it may cost is set aside; what it did cost replaces that when the bill comes. A request
that would not fit waits for those under way, and fails with BudgetSpent when none is left. So the limit holds whatever
runs concurrently.

A request that reached the server and brought no bill (timed out, cut off, not JSON) counts as what it may have cost at most.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gnothi.errors import BudgetSpent, InvalidSetting

MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a million tokens, in whatever currency; None where nobody said."""

    prompt: float | None = None
    generated: float | None = None

    @property
    def known(self) -> bool:
        return self.prompt is not None and self.generated is not None

    def cost(self, prompt_tokens: int, generated_tokens: int) -> float:
        return (prompt_tokens * (self.prompt or 0) + generated_tokens * (self.generated or 0)) / MILLION


@dataclass(slots=True)
class Charge:
    """One request. ``settle`` once when the bill is known; unsettled it counts as what was set aside."""

    prompt_tokens: int
    generated_tokens: int
    prices: Prices
    settled: bool = False
    billed: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.generated_tokens

    @property
    def cost(self) -> float:
        return self.prices.cost(self.prompt_tokens, self.generated_tokens)

    def settle(self, prompt_tokens: int, generated_tokens: int, billed: bool = True) -> None:
        """What it came to. ``billed`` False: our estimate, since the server said nothing."""
        self.prompt_tokens, self.generated_tokens = prompt_tokens, generated_tokens
        self.settled, self.billed = True, billed


class Budget:
    """Limits (None: unlimited) and the books. ``estimated_tokens`` are those among the tokens that no bill confirms."""

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.requests = 0
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self.estimated_tokens = 0
        self.cost = 0.0
        self.priced = True
        self._under_way: list[Charge] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._refused = ""
        self._books = threading.Lock()  # encoders are asked in loops of their own
        self._models: dict[str, Callable[[], Mapping[str, str]]] = {}

    @property
    def limited(self) -> bool:
        return self.max_cost is not None or self.max_tokens is not None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.generated_tokens

    @property
    def spent(self) -> bool:
        """Whether a limit is reached: nothing more fits."""
        return (self.max_tokens is not None and self.tokens >= self.max_tokens) or (
            self.max_cost is not None and self.cost >= self.max_cost
        )

    @property
    def overdrawn(self) -> bool:
        """Whether more than a limit was spent, which only calls bring about that nothing was set aside for."""
        return (self.max_tokens is not None and self.tokens > self.max_tokens) or (
            self.max_cost is not None and self.cost > self.max_cost
        )

    def check(self, prices: Prices) -> None:
        """Raises InvalidSetting where cost is limited and the prices are not known."""
        if self.max_cost is not None and not prices.known:
            raise InvalidSetting(
                "<--max-cost> needs the model's prices: give <--set model.price_in=...> and <--set model.price_out=...>, each "
                "for a million tokens, or limit tokens with <--max-tokens>."
            )

    async def reserve(self, prompt_tokens: int, generated_tokens: int, prices: Prices) -> Charge:
        """Set aside at most this much, as soon as it fits. Raises BudgetSpent. Every charge goes to ``close`` once."""
        charge = Charge(prompt_tokens, generated_tokens, prices)
        while True:
            with self._books:
                if not self._refused and self._fits(charge):
                    self._under_way.append(charge)
                    return charge
                if self._refused or not self._under_way:
                    self._refused = self._refused or self._message(charge)
                    raise BudgetSpent(self._refused)
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
            await turn

    def close(self, charge: Charge) -> None:
        """Enter the charge into the books and let the next ones try."""
        with self._books:
            self._under_way = [other for other in self._under_way if other is not charge]
            self.requests += 1
            self.prompt_tokens += charge.prompt_tokens
            self.generated_tokens += charge.generated_tokens
            self.estimated_tokens += 0 if charge.billed else charge.tokens
            self.cost += charge.cost
            self.priced = self.priced and charge.prices.known
            waiting, self._waiting = self._waiting, []
        for turn in waiting:
            turn.get_loop().call_soon_threadsafe(_wake, turn)

    def as_dict(self) -> dict[str, Any]:
        """What was charged; ``cost`` is None where a price was not known."""
        return {
            "requests": self.requests,
            "prompt_tokens": self.prompt_tokens,
            "generated_tokens": self.generated_tokens,
            "estimated_tokens": self.estimated_tokens,
            "cost": self.cost if self.priced else None,
        }

    def add_model(self, model: str, describe: Callable[[], Mapping[str, str]]) -> None:
        """Add a model that is paid from this budget. ``describe`` returns its present metadata."""
        self._models[model] = describe

    @property
    def models(self) -> dict[str, dict[str, str]]:
        """The metadata of the models that are paid from this budget: what was left out of requests and why, and the like."""
        return {model: dict(describe()) for model, describe in self._models.items()}

    def describe(self) -> str:
        """The books in one line."""
        requests = "1 request" if self.requests == 1 else f"{self.requests:,} requests"
        text = f"{requests}, {self.prompt_tokens:,} prompt and {self.generated_tokens:,} generated tokens"
        if self.estimated_tokens:
            text += f" ({self.estimated_tokens:,} of them estimated)"
        return f"{text}, cost {self.cost:.4f}" if self.priced and self.requests else text

    def _fits(self, charge: Charge) -> bool:
        tokens = self.tokens + sum(other.tokens for other in self._under_way)
        cost = self.cost + sum(other.cost for other in self._under_way)
        return (self.max_tokens is None or tokens + charge.tokens <= self.max_tokens) and (
            self.max_cost is None or cost + charge.cost <= self.max_cost
        )

    def _message(self, charge: Charge) -> str:
        if self.max_tokens is not None and self.tokens + charge.tokens > self.max_tokens:
            spent = f"{self.tokens:,} of {self.max_tokens:,} tokens are spent, and it may need {charge.tokens:,}"
            flag = "<--max-tokens>"
        else:
            spent = f"{self.cost:.4f} of {self.max_cost} is spent, and it may cost up to {charge.cost:.4f}"
            flag = "<--max-cost>"
        return f"the budget does not cover the next request: {spent}. Allow more with {flag}."


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


_current: ContextVar[Budget | None] = ContextVar("gnothi_budget", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Models opened inside the block share ``budget``."""
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def current() -> Budget:
    """The budget of the surrounding ``spending``, else a new one without limits."""
    return _current.get() or Budget()
