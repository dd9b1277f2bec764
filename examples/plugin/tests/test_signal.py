from __future__ import annotations

import pytest
from gnothi_example.signal import share

from gnothi.testing.conformance import SignalConformance


class TestHedging(SignalConformance):
    name = "hedging"


@pytest.mark.parametrize(
    ("text", "expected"), [("In Kestrel.", 0.0), ("Perhaps in Ulm.", 1 / 3), ("Maybe. MAYBE!", 1.0), ("  ", None)]
)
def test_hedging(text: str, expected: float | None) -> None:
    assert share(text) == (expected and pytest.approx(expected))
