"""Alarms of the server's test of drift, counted."""

from __future__ import annotations

from benchmarks.drift import SIZES, made


def test_a_large_change_is_noticed_and_none_is_not() -> None:
    lines = [[cell.strip() for cell in line.split("|")] for line in made(4)[2:]]
    assert [line[1] for line in lines] == [f"{size:,}" for size in SIZES]
    assert all(float(line[2]) < 0.1 and float(line[5]) > 0.9 for line in lines)
