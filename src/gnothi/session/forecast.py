"""What a large evaluation would take, from a sample of it that was just asked."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gnothi.errors import InvalidInput
from gnothi.models.remote.budget import Prices
from gnothi.runs.rows import Row
from gnothi.session.early import PACE, Ahead, outlook
from gnothi.session.execute import Watch
from gnothi.session.plan import Asked, Plan
from gnothi.stats.intervals import Interval

HOUR = 3600.0


@dataclass
class Stopwatch(Watch):
    """Passes everything on to ``watch``, and notes when asking began and the last answer came."""

    watch: Watch
    began: float = field(default=0.0, init=False)
    ended: float = field(default=0.0, init=False)

    def opening(self, what: str) -> None:
        self.watch.opening(what)

    def asking(self, total: int, done: int, what: str) -> None:
        self.began = time.monotonic()
        self.watch.asking(total, done, what)

    def row(self, row: Row, label: str) -> None:
        self.ended = time.monotonic()
        self.watch.row(row, label)

    def warn(self, text: str) -> None:
        self.watch.warn(text)

    @property
    def seconds(self) -> float:
        return max(self.ended - self.began, 0.0)


@dataclass(frozen=True, slots=True)
class Amount:
    """``between`` which it lies, if the other questions and the machine are like the sample's."""

    value: float
    between: Interval

    def times(self, factor: float) -> Amount:
        return Amount(self.value * factor, Interval(self.between.low * factor, self.between.high * factor))


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of ``answers``. ``hours`` of the clock; ``money``: what the model's API and the machines cost, in the currency of the
    prices, None where neither has one. ``sample``: answers that were measured, in ``seconds``; ``cached``: model calls among
    theirs that the cache answered."""

    answers: int
    calls: float
    tokens: Amount
    hours: Amount
    money: Amount | None
    sample: int
    seconds: float
    failed: int
    cached: int


def drawn(plan: Plan, size: int) -> Plan:
    """With ``size`` of its questions, drawn at random by the seed: the first of a file may be of one kind."""
    from gnothi.runs.runner import fingerprint

    asked = plan.questions
    if len(asked.questions) <= size:
        return plan
    some = random.Random(plan.execution.seed).sample(list(asked.questions), size)
    return replace(plan, asked=Asked(asked.dataset, some, asked.format, asked.limit, fingerprint(some)))


def forecast(
    rows: Sequence[Row],
    seconds: float,
    questions: int,
    prices: Prices,
    copies: tuple[int, int] = (1, 1),
    price_hour: float | None = None,
) -> Forecast:
    """For so many ``questions`` with every method of the sample's ``rows``, which took ``seconds`` together.

    ``copies`` of the model: in the sample, and in the run, which is taken to be faster in proportion. ``prices``: of the
    model's tokens; ``price_hour``: of the machine of one copy. Tokens vary by the sample (95 %), hours by that and by 25 %
    more or less. Raises InvalidInput for fewer than two answers of a method.
    """
    answered = [row for row in rows if not row.failed]
    methods: dict[str, Ahead] = {}
    for row in answered:
        read_and_written, calls = row.cost["prompt_tokens"] + row.cost["generated_tokens"], row.cost["model_calls"]
        one = methods.setdefault(row.method, Ahead(0, [], []))
        one.tokens.append(read_and_written)
        one.calls.append(calls)
        one.done += read_and_written
        one.made += int(calls)
    lacking = sorted({row.method for row in rows} - {name for name, one in methods.items() if len(one.tokens) > 1})
    if lacking or not methods:
        raise InvalidInput(
            f"the sample: got fewer than two answers of {', '.join(lacking) or 'any method'}, expected two at least. "
            "Ask more with <--sample>, or see why questions fail with `gnothi ask`."
        )
    for one in methods.values():
        one.missing = questions + len(one.tokens)  # what is ahead begins after the sample
    found = outlook(methods, seconds)
    if found is None:
        raise InvalidInput("the sample: its answers took no tokens, so nothing can be said of more. Is a model asked at all?")
    measured, planned = copies
    hours = Amount(found.seconds, found.between).times(measured / planned / HOUR)
    # The outlook's seconds are its tokens at the sample's speed, and its bounds theirs with the pace's.
    least, most = (bound / found.seconds * found.tokens for bound in found.between)
    tokens = Amount(found.tokens, Interval(least / (1 - PACE), most / (1 + PACE)))
    return Forecast(
        answers=questions * len(methods),
        calls=found.calls,
        tokens=tokens,
        hours=hours,
        money=_money(answered, tokens, hours, prices, planned, price_hour),
        sample=len(answered),
        seconds=seconds,
        failed=len(rows) - len(answered),
        cached=int(sum(row.cost.get("cached_calls", 0) for row in answered)),
    )


def _money(
    rows: Sequence[Row], tokens: Amount, hours: Amount, prices: Prices, copies: int, price_hour: float | None
) -> Amount | None:
    parts = []
    if prices.known:
        prompt, generated = (int(sum(row.cost[key] for row in rows)) for key in ("prompt_tokens", "generated_tokens"))
        parts.append(tokens.times(prices.cost(prompt, generated) / (prompt + generated)))
    if price_hour is not None:
        parts.append(hours.times(copies * price_hour))
    if not parts:
        return None
    low, high = (sum(part.between[place] for part in parts) for place in (0, 1))
    return Amount(sum(part.value for part in parts), Interval(low, high))
