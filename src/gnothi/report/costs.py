"""What answers cost: calls, tokens, searches and seconds, and money where prices are given."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.config import Given, build
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.runs.rows import Row
from gnothi.stats.intervals import mean, mean_interval

MILLION = 1_000_000
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

    def __post_init__(self) -> None:
        for name in ("prompt", "generated", "call", "retrieval"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: got {getattr(self, name)}, expected a number that is not negative")

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


def read_prices(file: Path | None = None, given: Sequence[str] = ()) -> Prices | None:
    """Prices of a TOML file, and over them those ``given`` as ``KEY=VALUE[,KEY=VALUE...]``; None where neither names any.

    Raises InvalidInput, UnknownName or InvalidSetting."""
    named = {key: Given(value, str(file)) for key, value in _load(file).items()} if file else {}
    for text in given:
        for item in text.split(","):
            key, equals, value = item.partition("=")
            if not equals:
                raise InvalidSetting(
                    f"--price: got {text!r}, expected prices as prompt=0.15,generated=0.60 (per million tokens), call=..., "
                    "retrieval=... (each), currency=EUR."
                )
            named[key.strip()] = Given(value.strip(), f"--price {text}")
    return build(Prices, named, "prices") if named else None


def _load(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read the prices {file}: {error.strerror}. Check --prices.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the prices {file} are not valid TOML: {error}; expected lines such as prompt = 0.15.") from None


def costs(rows: Sequence[Row], prices: Prices | None) -> dict[str, Any]:
    """Of one method. ``total``: sums over all questions, failed ones included. ``per_question`` and ``per_thousand`` (money):
    means over those that did not fail. ``per_right`` is the money spent for each exact match; money is None without prices.

    Calls that the cache answered count as if they had been made."""
    answered = [row for row in rows if not row.failed]
    right = sum(row.metrics.get("em", 0.0) >= 1 for row in answered)
    found: dict[str, Any] = {
        "total": {name: sum(row.cost.get(name, 0) for row in rows) for name in COUNTS},
        "per_question": {name: mean(row.cost[name] for row in answered) for name in COUNTS},
        "tokens": mean(row.cost["prompt_tokens"] + row.cost["generated_tokens"] for row in answered),
        "money": None,
    }
    if prices is None:
        return found
    paid = [prices.parts(row.cost) for row in rows if row.cost]
    each = [1000 * sum(prices.parts(row.cost).values()) for row in answered]
    total = sum(sum(parts.values()) for parts in paid)
    found["money"] = {
        "total": total,
        "per_thousand": mean(each),
        "interval": mean_interval(each),
        "per_right": total / right if right else None,
        "parts": {name: sum(parts[name] for parts in paid) for name in ("prompt", "generated", "call", "retrieval")},
    }
    return found
