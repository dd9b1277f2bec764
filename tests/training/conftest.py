from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor

import pytest

from tests.training.launched import preloaded


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Executor]:
    """Trains in a process that is forked with the libraries loaded: for pytest's own to load them takes ten seconds."""
    with ProcessPoolExecutor(1, preloaded(), gc.freeze) as pool:
        yield pool
