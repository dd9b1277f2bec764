"""Passages with metadata made up, filters made up, and a plain scan that says which of them pass: written anew, by dates and
floats of Python's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gnothi.protocols import Retriever
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import as_filters
from gnothi.types import Passage

Wish = tuple[str, str, list[str]]

_SOURCES = ["handbook", "handbook.pdf", "notes/a.md", "notes/b, c.md", 'say "x".md', "it's.md", "Übung.md", "a\\b%_.md"]
_DATES = ["2023", "2024-02", "2024-12-31", "2025-01-01", "2025-01-15T10:30:00Z", "2025-01-31T23:30:00-05:00", "2025-02-30"]
_PAGES = [1, 2, 7, 10, 2024, -3, 2.5, 1e20, "7", "07", "2.50", "ten"]
_OTHERS = [True, False, "true", "x" * 500, "' OR 1=1 --", '"; DROP', "東京", "1999", 1999]


def passages(seed: int, size: int = 120) -> list[Passage]:
    rng = random.Random(seed)
    made = []
    for number in range(size):
        known: dict[str, Any] = {}
        for key, values in (("source", _SOURCES), ("date", _DATES), ("page", _PAGES), ("odd key'\"`", _OTHERS)):
            if rng.random() < 0.85:
                known[key] = rng.choice(values)
        text = " ".join(["heron", *rng.choices(["lake", "reed", "fish", "boat"], k=rng.randint(1, 9))])
        made.append(Passage(f"p{number:03}", text, "", known))
    return made


def wishes(seed: int, count: int = 200) -> list[list[Wish]]:
    """So many lists of one to three filters."""
    rng = random.Random(seed)
    every: dict[str, list[Any]] = {
        "source": [*_SOURCES, "notes/*", "*"],
        "date": [*_DATES[:-1], "2024", "2025-01", "2025-01-15"],
    }
    every |= {"page": [*_PAGES, "1.0", "0", "-1e3"], "odd key'\"`": [*_OTHERS, "' *", "2000"]}

    def one() -> Wish:
        key = rng.choice(list(every))
        operator = rng.choice(["=", "!=", ">", ">=", "<", "<="])
        known = [str(value).lower() if isinstance(value, bool) else str(value) for value in every[key]]
        if operator in ("=", "!="):
            return key, operator, rng.sample(known, rng.randint(1, 3))
        fit = [value for value in known if number(value) is not None or span(value)]
        return (key, operator, [rng.choice(fit)]) if fit else (key, "=", [rng.choice(known)])

    return [[one() for _ in range(rng.choice([1, 1, 2, 3]))] for _ in range(count)]


def passing(known: Mapping[str, Any], wished: list[Wish]) -> bool:
    return all(_passes(known, *one) for one in wished)


def _passes(known: Mapping[str, Any], key: str, operator: str, values: list[str]) -> bool:
    if key not in known:
        return False
    held = known[key]
    if operator in ("=", "!="):
        return any(_equals(held, value) for value in values) == (operator == "=")
    return _compares(held, operator, values[0])


def _equals(held: Any, value: str) -> bool:
    text = str(held).lower() if isinstance(held, bool) else str(held)
    if value.endswith("*"):
        return text.startswith(value[:-1])
    if text == value:
        return True
    if isinstance(held, int | float) and not isinstance(held, bool) and number(value) == held:
        return True
    moment, wanted = span(text), span(value)
    return not isinstance(held, bool) and moment is not None and wanted is not None and wanted[0] <= moment[0] < wanted[1]


def _compares(held: Any, operator: str, value: str) -> bool:
    if isinstance(held, bool):
        return False
    one, other = number(str(held)), number(value)
    if one is not None and other is not None:
        told = {">": one > other, ">=": one >= other, "<": one < other, "<=": one <= other}
        if told[operator]:
            return True
    moment, wanted = span(str(held)), span(value)
    if moment is None or wanted is None:
        return False
    at = moment[0]
    return {">": at >= wanted[1], ">=": at >= wanted[0], "<": at < wanted[0], "<=": at < wanted[1]}[operator]


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def span(text: str) -> tuple[datetime, datetime] | None:
    for form, length in (("%Y", 366), ("%Y-%m", 31), ("%Y-%m-%d", 1), ("%Y-%m-%dT%H:%M:%S%z", 0)):
        try:
            begin = datetime.strptime(text, form)
        except ValueError:
            continue
        if len(text) < 4 or (form == "%Y" and len(text) != 4):
            return None
        begin = begin.replace(tzinfo=UTC) if begin.tzinfo is None else begin.astimezone(UTC)
        end = begin + (timedelta(days=length) if length else timedelta(seconds=1))
        if form == "%Y":
            end = begin.replace(year=begin.year + 1)
        if form == "%Y-%m":
            end = end.replace(day=1)
            end = end if end > begin else (begin + timedelta(days=31)).replace(day=1)
        return begin, end
    return None


async def check(retriever: Retriever, corpus: list[Passage], seed: int, count: int = 200) -> None:
    """For each wish, what is found is what passes, with the scores that it has without a filter, at any k."""
    everything = {one.passage: one.score for one in await retriever.search("heron lake reed", len(corpus) + 5)}
    kinds = set()
    for wished in wishes(seed, count):
        asked = [(key, operator, values if len(values) > 1 else values[0]) for key, operator, values in wished]
        narrowed = filtered(retriever, as_filters(asked))
        expected = sorted(
            ((passage, score) for passage, score in everything.items() if passing(passage.metadata, wished)),
            key=lambda pair: (-pair[1], pair[0].id),
        )
        found = [(one.passage, one.score) for one in await narrowed.search("heron lake reed", len(corpus))]
        assert found == expected, wished
        assert [(one.passage, one.score) for one in await narrowed.search("heron lake reed", 3)] == expected[:3]
        kinds.add(0 if not expected else 1 if len(expected) < len(corpus) else 2)
    assert {0, 1} <= kinds


def sourced(corpus: list[Passage], source: str) -> list[Passage]:
    """As a build puts them."""
    return [replace(one, metadata={"source": source, **one.metadata}) for one in corpus]
