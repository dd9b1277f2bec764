"""The command line beside the Python interface, under a name that is not the package's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gnothi_run(gnothi: Run) -> Run:
    return gnothi
