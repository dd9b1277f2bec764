"""Numbers as people read them."""

from __future__ import annotations

import pytest

from gnothi.errors import counted
from gnothi.report.numbers import between, chance, interval, money, number, percent, share, signed, thousands
from gnothi.stats.intervals import Interval


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "-"), (0.0, ".000"), (0.1234, ".123"), (0.9996, "1.000"), (1.0, "1.000")]
)
def test_shares(given: float | None, expected: str) -> None:
    assert share(given) == expected


def test_other_numbers() -> None:
    assert [number(value) for value in (None, 0.123, 12.34, 123.4)] == ["-", "0.12", "12.3", "123"]
    assert [thousands(value) for value in (999.4, 12_345)] == ["999", "12.3k"]
    assert [between(None), between(Interval(0.1, 1.0))] == ["", ".10-1.0"]
    assert [between(Interval(0.004, 0.9996)), between(Interval(1e-17, 1 - 1e-16))] == [".004-.9996", ".00-1.0"]
    assert interval(Interval(-0.1, 0.1), sign=True) == "[−.100, +.100]"
    assert [money(value) for value in (None, 0.00123, 1234.5)] == ["-", "0.00123", "1,234.50"]
    assert [percent(value) for value in (None, -0.001, 0.126)] == ["-", "0%", "13%"]
    assert [percent(value) for value in (0.0, 0.004, 0.996, 0.9996, 1.0)] == ["0%", "0.4%", "99.6%", "99.96%", "100%"]
    assert [percent(value) for value in (1e-17, 1 - 1e-16)] == ["0%", "100%"]
    assert [counted(1, "search", "searches"), counted(2, "try", "tries"), counted(1200, "fact")] == [
        "1 search",
        "2 tries",
        "1,200 facts",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-0.04, "−.040"),
        (0.4, "+.400"),
        (0.0, ".000"),
        (-0.0001, ".000"),
        (1.0, "+1.000"),
        (-1.0, "−1.000"),
        (10.25, "+10.250"),
        (-20.5, "−20.500"),
    ],
)
def test_signs(value: float, shown: str) -> None:
    assert signed(value) == shown


@pytest.mark.parametrize(("p", "shown"), [(1.0, "1"), (0.0412, "0.041"), (1e-13, "1e-13"), (3.4e-7, "3e-7"), (0.001, "0.001")])
def test_chances(p: float, shown: str) -> None:
    assert chance(p) == shown
