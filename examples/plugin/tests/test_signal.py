from __future__ import annotations

import pytest
from gnothi_example.signal import hedging

from gnothi.testing.conformance import SignalConformance


class TestHedging(SignalConformance):
    name = "hedging"


@pytest.mark.parametrize(
    ("text", "share"), [("In Kestrel.", 0.0), ("Perhaps in Ulm.", 1 / 3), ("Maybe. MAYBE!", 1.0), ("  ", float("inf"))]
)
def test_hedging(text: str, share: float) -> None:
    assert hedging(text) == pytest.approx(share)
