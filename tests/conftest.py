"""What every test shares."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.command_line import gnothi, gnothi_json, scripted

__all__ = ["gnothi", "gnothi_json", "scripted"]

# The models of the tests are tiny: more than one thread costs more than it gives, several times so on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What a shell starts in the background ignores interrupts, and so do its children: tests that interrupt theirs would fail.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared machines stall, and hypothesis's first text of a fresh clone takes seconds: time is no ground for failing here.
settings.register_profile("gnothi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gnothi")


@pytest.fixture
def swept() -> Iterator[None]:
    """What the test leaves is collected at its end, when a coroutine that was never awaited warns; nothing older is looked at,
    for that takes half a second among all the modules that tests import."""
    gc.freeze()
    yield
    gc.collect()
    gc.unfreeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the project (never part of it): $GNOTHI_SHARED/data, or shared/data in a parent folder."""
    given = os.environ.get("GNOTHI_SHARED")
    parents = [Path(given)] if given else [parent / "shared" for parent in Path(__file__).resolve().parents]
    for parent in parents:
        if (parent / "data").is_dir():
            return parent / "data"
    pytest.skip("no shared/data in the parents of the project, and GNOTHI_SHARED does not name the folder that holds data/")
