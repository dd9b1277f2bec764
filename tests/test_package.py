"""Threads of torch that sleep while they wait: set before torch is loaded, and only where nobody has chosen."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("before", "after"), [(None, "passive"), ("active", "active")])
def test_threads_wait_asleep_unless_told(before: str | None, after: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    told = environment | ({"OMP_WAIT_POLICY": before} if before else {})
    script = "import gnothi, os; print(os.environ['OMP_WAIT_POLICY'])"
    done = subprocess.run([sys.executable, "-c", script], env=told, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [after]
