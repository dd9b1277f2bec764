"""Programs of ``benchmarks``, run in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.preloaded import Preloaded

ROOT = Path(__file__).parents[2]
Program = Callable[..., subprocess.CompletedProcess[str]]
Document = Callable[..., Any]


@pytest.fixture
def program(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs ``python -m COMMAND``."""
    python = preloaded.client(tmp_path_factory.mktemp("bin") / "python", "-m")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([python, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def document(program: Program) -> Document:
    """Runs a program and reads the one document that it prints."""

    def document(*command: str, short: bool = True) -> Any:
        done = program(*command, "--json", *(("--repeats", "1", "--threads", "1") if short else ()))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return document
