"""The command line beside the Python interface, under a name that is not the package's; and nothing given is left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gnothi.methods.registry import METHODS
from gnothi.registry import GIVEN
from gnothi.signals.registry import SIGNALS
from tests.command_line import Run


@pytest.fixture
def gnothi_run(gnothi: Run) -> Run:
    return gnothi


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Functions that a test gave: the panel measures every signal that is known."""
    yield
    for registry in (METHODS, SIGNALS):
        for name in [name for name in registry.names() if registry.entry(name).origin == GIVEN]:
            registry.remove(name)
