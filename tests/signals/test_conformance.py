"""Every signal that comes along, through the suite that is public."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gnothi.registry import BUILT_IN
from gnothi.signals import registry
from gnothi.testing.conformance.signal import SignalConformance
from tests.signals.probes import probe_saying


async def meeting(phrases: Sequence[str]) -> int:
    """In a corpus that knows where one of the two was born."""
    return 3 * all(one in "Mira Tolven was born in Kestrel." for one in phrases)


@pytest.fixture(
    params=[entry.name for entry, _ in registry.SIGNALS.items() if entry.origin == BUILT_IN], autouse=True, scope="class"
)
def signal(request: pytest.FixtureRequest) -> None:
    """The suite once for each."""
    request.cls.name = request.param
    learnt = registry.reads_probe(request.param)
    request.cls.probe = probe_saying(0.7) if learnt else None
    counts = registry.counts(request.param)
    request.cls.count = staticmethod(meeting) if counts else None
    # The probe says the same of every prompt, and so does a count of the question's names.
    request.cls.tells = not learnt and request.param != "entity_frequency"


class TestConformance(SignalConformance):
    name = ""
