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
FORKS = "import runpy, sys; sys.executable = {!r}; del sys.argv[0]; runpy.run_module(sys.argv[0], None, '__main__', True)"
"""Runs a module whose programs are forked from a process that has torch."""


@pytest.fixture
def program(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs ``python -m COMMAND``; ``forks``: the processes that it starts are forked, too."""
    python = preloaded.client(tmp_path_factory.mktemp("bin") / "python")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def run(*command: str, forks: bool = False) -> subprocess.CompletedProcess[str]:
        how = ("-c", FORKS.format(str(python))) if forks else ("-m",)
        return subprocess.run([python, *how, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def document(program: Program) -> Document:
    """Runs a program and reads the one document that it prints."""

    def document(*command: str, short: bool = True, forks: bool = False) -> Any:
        done = program(*command, "--json", *(("--repeats", "1", "--threads", "1") if short else ()), forks=forks)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return document
