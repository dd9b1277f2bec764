"""What answers cost: calls, tokens, searches and seconds, and money where prices are given."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.config import Given, build
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.files import TOML_ERRORS
from gnothi.runs.rows import Row
from gnothi.stats.intervals import Interval, mean, mean_interval

MILLION = 1_000_000
PAID = ("prompt", "generated", "call", "retrieval")
COUNTS = ("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Prices:
    """``prompt`` and ``generated`` are per million tokens, ``call`` per model call, ``retrieval`` per search; all in
    ``currency``. ``hour``: per hour of one device, which only a forecast counts."""

    prompt: float = 0.0
    generated: float = 0.0
    call: float = 0.0
    retrieval: float = 0.0
    currency: str = ""
    hour: float = 0.0

    def __post_init__(self) -> None:
        for name in (*PAID, "hour"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"got {name} = {value:g}, expected a number that is not negative.")

    def parts(self, cost: Mapping[str, float]) -> dict[str, float]:
        """What a row's cost comes to, by what it is paid for."""
        return {
            "prompt": cost["prompt_tokens"] * self.prompt / MILLION,
            "generated": cost["generated_tokens"] * self.generated / MILLION,
            "call": cost["model_calls"] * self.call,
            "retrieval": cost["retrievals"] * self.retrieval,
        }


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


def read_prices(settings: Sequence[str]) -> Prices | None:
    """Prices from texts of the form ``KEY=VALUE[,KEY=VALUE...]`` and from TOML files, later ones over earlier ones; None where
    none is named.

    Raises InvalidInput, UnknownName or InvalidSetting."""
    values: dict[str, object] = {}
    for text in settings:
        pairs = [item.partition("=") for item in text.split(",")]
        if text.endswith(".toml") or not any(equals for _, equals, _ in pairs):
            values |= {key: Given(value, text) for key, value in _load(Path(text)).items()}
            continue
        if not all(equals for _, equals, _ in pairs):
            raise InvalidSetting(
                f"prices: got {text!r}, expected prices as prompt=0.15,generated=0.60 (per million tokens), call=..., "
                "retrieval=... (each), hour=... (of one device), currency=EUR; or a TOML file with these keys."
            )
        values |= {key.strip(): Given(value.strip(), text) for key, _, value in pairs}
    return build(Prices, values, "prices") if values else None


def _load(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"cannot read the prices {file}: {error.strerror}. Expected KEY=VALUE, as in prompt=0.15, or a TOML file."
        ) from None
    except TOML_ERRORS as error:
        raise InvalidInput(f"the prices {file} are not valid TOML: {error}; expected lines such as prompt = 0.15.") from None


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
        interval=mean_interval(each, share=False),
        per_right=total / right if right else None,
        parts={name: sum(parts[name] for parts in paid) for name in PAID},
    )
