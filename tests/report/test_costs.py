"""Prices: what is read, what is refused, what it comes to by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.report.costs import Prices, costs, read_prices
from tests.messages import refused
from tests.report.rows import row


def test_a_file_and_options_over_it(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('prompt = 0.15\ngenerated = 1\ncurrency = "EUR"\n', encoding="utf-8")
    assert read_prices([str(file)]) == Prices(0.15, 1.0, currency="EUR")
    assert read_prices([str(file), "generated=0.6, retrieval=0.001", "currency=USD"]) == Prices(0.15, 0.6, 0.0, 0.001, "USD")
    assert read_prices([]) is None


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("prompts=1", UnknownName),
        ("prompt=cheap", InvalidSetting),
        ("prompt=-1", InvalidSetting),
        ("prompt=inf", InvalidSetting),
        ("0.15", InvalidInput),
        ("prompt=1,0.15", InvalidSetting),
    ],
)
def test_what_is_refused(given: str, error: type[Exception]) -> None:
    with refused(error):
        read_prices([given])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with refused(InvalidInput):
        read_prices([str(tmp_path / "none.toml")])
    (tmp_path / "bad.toml").write_text("prompt: 1", encoding="utf-8")
    with refused(InvalidInput):
        read_prices([str(tmp_path / "bad.toml")])
    (tmp_path / "huge.toml").write_text(f"prompt = {10**400}", encoding="utf-8")
    with refused(InvalidSetting):
        read_prices([str(tmp_path / "huge.toml")])
    (tmp_path / "true.toml").write_text("prompt = true", encoding="utf-8")
    with refused(InvalidSetting):
        read_prices([str(tmp_path / "true.toml")])


def test_by_hand() -> None:
    """Each row: 100 prompt and 10 generated tokens in 2 calls, and a search where it retrieved."""
    rows = [row("m", 0, retrieved=True), row("m", 1, right=False), row("m", 2, failed=True)]
    found = costs("m", rows, Prices(prompt=10, generated=100, call=0.5, retrieval=2))
    assert found.total["model_calls"] == 6
    assert found.tokens == 110
    money = found.money
    assert money is not None
    each = 100 * 10 / 1e6 + 10 * 100 / 1e6 + 2 * 0.5
    assert money.total == pytest.approx(3 * each + 2)
    assert money.per_thousand == pytest.approx(1000 * (2 * each + 2) / 2)
    assert money.per_right == pytest.approx(money.total)
    assert sum(money.parts.values()) == pytest.approx(money.total)
    nothing_right = costs("m", [row("m", 1, right=False)], Prices(call=1)).money
    assert nothing_right is not None
    assert nothing_right.per_right is None
    assert costs("m", rows, None).money is None
    without_search = costs("m", [row("m", n) for n in range(20)], Prices(retrieval=0.001)).money
    assert without_search is not None
    assert (without_search.per_thousand, without_search.interval) == (0, None)
