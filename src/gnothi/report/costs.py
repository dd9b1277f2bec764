"""What answers cost: calls, tokens, searches and seconds, and money where prices are given."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.runs.rows import Row
from gnothi.stats.statistics import Interval, mean, mean_interval

MILLION = 1_000_000
PAID = ("prompt", "generated", "call", "retrieval")
COUNTS = ("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Prices:
    """``prompt`` and ``generated`` are per million tokens, ``call`` per model call, ``retrieval`` per search; all in
    ``currency``."""

    prompt: float = 0.0
    generated: float = 0.0
    call: float = 0.0
    retrieval: float = 0.0
    currency: str = ""

    def parts(self, cost: Mapping[str, float]) -> dict[str, float]:
        """What a row's cost comes to, by what it is paid for."""
        return {
            "prompt": cost["prompt_tokens"] * self.prompt / MILLION,
            "generated": cost["generated_tokens"] * self.generated / MILLION,
            "call": cost["model_calls"] * self.call,
            "retrieval": cost["retrievals"] * self.retrieval,
        }

    @property
    def free(self) -> bool:
        return not (self.prompt or self.generated or self.call or self.retrieval)


KEYS = tuple(item.name for item in fields(Prices))
_EXPECTED = "expected prices as prompt=0.15,generated=0.60 (per million tokens), call=..., retrieval=... (each), currency=EUR"


@dataclass(frozen=True, slots=True)
class Money:
    """``total``: over all questions; ``per_right``: for each exact match. ``per_thousand`` questions with its interval.
    ``parts``: the total by what it is paid for."""

    total: float
    per_thousand: float | None
    interval: Interval | None
    per_right: float | None
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Costs:
    """``total``: sums over all questions, failed ones included. ``per_question``, ``tokens`` (of prompts and replies) and money
    per thousand: means over those that did not fail. Calls that the cache answered count as if they had been made."""

    method: str
    total: Mapping[str, float]
    per_question: Mapping[str, float | None]
    tokens: float | None
    money: Money | None


def read_prices(file: Path | None = None, given: Sequence[str] = ()) -> Prices | None:
    """Prices of a TOML file, and over them those ``given`` as ``KEY=VALUE[,KEY=VALUE...]``; None where neither names any.

    Raises InvalidInput, UnknownName or InvalidSetting."""
    values = _checked(_load(file), str(file)) if file else {}
    for text in given:
        pairs = {}
        for item in text.split(","):
            key, equals, value = item.partition("=")
            if not equals:
                raise InvalidSetting(f"prices: got {text!r}, {_EXPECTED}.")
            pairs[key.strip()] = value.strip()
        values |= _checked(pairs, f"prices {text}")
    return Prices(**values) if values else None


def _load(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"cannot read the prices {file}: {error.strerror}. Give a TOML file with lines such as prompt = 0.15."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the prices {file} are not valid TOML: {error}; expected lines such as prompt = 0.15.") from None


def _checked(pairs: Mapping[str, Any], place: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs.items():
        if key not in KEYS:
            raise UnknownName(f"price ({place})", key, KEYS)
        if key == "currency":
            values[key] = str(value)
            continue
        try:
            number = float(value) if not isinstance(value, bool) else -1.0
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if not 0 <= number < float("inf"):
            raise InvalidSetting(f"{place}: got {key} = {value!r:.60}, expected a number that is not negative.")
        values[key] = number
    return values


def costs(method: str, rows: Sequence[Row], prices: Prices | None) -> Costs:
    """What a method's rows cost; money is None without prices."""
    answered = [row for row in rows if not row.failed]
    return Costs(
        method=method,
        total={name: sum(row.cost.get(name, 0) for row in rows) for name in COUNTS},
        per_question={name: mean(row.cost[name] for row in answered) for name in COUNTS},
        tokens=mean(row.cost["prompt_tokens"] + row.cost["generated_tokens"] for row in answered),
        money=None if prices is None else _money(rows, answered, prices),
    )


def _money(rows: Sequence[Row], answered: Sequence[Row], prices: Prices) -> Money:
    paid = [prices.parts(row.cost) for row in rows if row.cost]
    each = [1000 * sum(prices.parts(row.cost).values()) for row in answered]
    total = sum(sum(parts.values()) for parts in paid)
    right = sum(row.metrics.get("em", 0.0) >= 1 for row in answered)
    return Money(
        total=total,
        per_thousand=mean(each),
        interval=mean_interval(each),
        per_right=total / right if right else None,
        parts={name: sum(parts[name] for parts in paid) for name in PAID},
    )
