"""Risk and coverage against their definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.stats.auroc import risk_coverage


@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), max_size=40))
def test_risk_coverage_is_its_definition(items: list[tuple[float, bool]]) -> None:
    coverage, risk = risk_coverage([u for u, _ in items], [w for _, w in items])
    limits = sorted({u for u, _ in items})
    assert len(coverage) == len(limits)
    for limit, share, wrong in zip(limits, coverage, risk, strict=True):
        accepted = [w for u, w in items if u <= limit]
        assert share == pytest.approx(len(accepted) / len(items))
        assert wrong == pytest.approx(sum(accepted) / len(accepted))
