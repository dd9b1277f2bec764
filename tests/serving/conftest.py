"""The command line under a name that is not the package's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def gnothi_run_json(gnothi_json: Callable[..., Any]) -> Callable[..., Any]:
    return gnothi_json
