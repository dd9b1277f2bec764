"""Every signal that comes along, through the suite that is public."""

from __future__ import annotations

import pytest

from gnothi.registry import BUILT_IN
from gnothi.signals import registry
from gnothi.testing.conformance.signal import SignalConformance
from tests.signals.probes import probe_saying


@pytest.fixture(
    params=[entry.name for entry, _ in registry.SIGNALS.items() if entry.origin == BUILT_IN], autouse=True, scope="class"
)
def signal(request: pytest.FixtureRequest) -> None:
    """The suite once for each."""
    request.cls.name = request.param
    learnt = registry.reads_probe(request.param)
    request.cls.probe = probe_saying(0.7) if learnt else None
    request.cls.tells = not learnt  # the probe says the same of every prompt


class TestConformance(SignalConformance):
    name = ""
