"""The command line under a name that is not the package's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.command_line import Json


@pytest.fixture
def gnothi_run_json(gnothi_json: Json) -> Callable[..., Any]:
    return gnothi_json
