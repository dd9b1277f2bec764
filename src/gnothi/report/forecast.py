"""What many more questions would take, from a run over some: tokens, hours, money, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnothi.errors import InvalidInput
from gnothi.report.costs import MILLION, Prices
from gnothi.runs.folder import Pace
from gnothi.runs.rows import Row, group
from gnothi.stats.intervals import Interval, mean, mean_interval

SPREAD = 0.25
"""By so much more or less than measured a machine may do in an hour: other texts, other load, a batch that is never full."""
RAMP = 4
"""A run that asks fewer questions than so many times those under way spends most of its time filling up and running empty."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """With the ends of what is likely (95% for the questions; hours and money by hours also ± ``SPREAD``); one answer does not
    tell them."""

    value: float
    between: Interval | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one method, for all questions together. ``hours`` are None where the run was not timed, ``money`` where there are no
    prices, or one by the hour and no hours."""

    method: str
    seen: int
    calls: Estimate
    searches: Estimate
    read: Estimate
    written: Estimate
    hours: Estimate | None
    money: Estimate | None


def forecast(
    rows: Sequence[Row], paces: Sequence[Pace], questions: int, devices: int = 1, prices: Prices | None = None
) -> list[Forecast]:
    """Per method. ``devices`` share the work evenly, each as fast as all that the run had. Raises InvalidInput where no
    question was answered."""
    answered = group([row for row in rows if not row.failed])
    if not answered:
        raise InvalidInput("the run holds no answers, expected some to reckon from.")
    return [_of(name, some, paces, questions, devices, prices) for name, some in answered.items()]


def caveats(rows: Sequence[Row], paces: Sequence[Pace]) -> list[str]:
    """What makes the figures less sure than their ends say."""
    notes = []
    if not paces:
        notes.append("this run was not timed (only a run that was not killed is), so no hours are told")
    elif (timed := sum(one.answers for one in paces)) < RAMP * (under_way := max(one.under_way for one in paces)):
        notes.append(
            f"few answers were timed ({timed}, with up to {under_way} questions under way): the machine was rarely full, so "
            f"hours are too high; ask {RAMP} times as many as are under way"
        )
    answered = group([row for row in rows if not row.failed])
    if single := [name for name, some in answered.items() if len(some) == 1]:
        notes.append(f"{', '.join(single)}: one question was answered, which does not show how much others differ")
    if len(answered) > 1 and paces:
        notes.append("several methods ran side by side: hours are shared out by tokens; time one alone to be sure of it")
    if any(row.cost.get("cached_calls") for some in answered.values() for row in some):
        notes.append("some replies came from the cache, which new questions will not find there: hours are too low")
    return notes


def _of(name: str, rows: Sequence[Row], paces: Sequence[Pace], questions: int, devices: int, prices: Prices | None) -> Forecast:
    def sums(values: Sequence[float], factor: float = 1.0, spread: float = 0.0) -> Estimate:
        each, whole = mean(values) or 0.0, questions * factor
        if len(values) < 2:
            return Estimate(each * whole, None)
        low, high = mean_interval(values, share=False) or (each, each)
        return Estimate(each * whole, Interval(low * whole * (1 - spread), high * whole * (1 + spread)))

    read = [row.cost["prompt_tokens"] for row in rows]
    written = [row.cost["generated_tokens"] for row in rows]
    both = [one + other for one, other in zip(read, written, strict=True)]
    seconds, tokens = sum(one.seconds for one in paces), sum(one.tokens for one in paces)
    hours = sums(both, seconds / tokens / 3600 / devices, SPREAD) if tokens else None
    usage = [sums(values) for values in (read, written)] + [
        sums([row.cost[key] for row in rows]) for key in ("model_calls", "retrievals")
    ]
    money = None
    if prices is not None and (hours or not prices.hour):
        each = (prices.prompt / MILLION, prices.generated / MILLION, prices.call, prices.retrieval)
        parts = [*zip(usage, each, strict=True), *([(hours, prices.hour * devices)] if hours else [])]
        ends = [(one.between, price) for one, price in parts if one.between]
        between = Interval(*(sum(ends_of[end] * price for ends_of, price in ends) for end in (0, 1))) if ends else None
        money = Estimate(sum(one.value * price for one, price in parts), between)
    reads, writes, calls, searches = usage
    return Forecast(name, len(rows), calls, searches, reads, writes, hours, money)
