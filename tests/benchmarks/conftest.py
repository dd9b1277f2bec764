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
_FORKING = """import runpy, sys
sys.executable, sys.argv = {python!r}, sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)"""


@pytest.fixture
def program(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs ``python -m COMMAND``. ``forking``: programs that it starts are forked from one that has torch, as itself is."""
    folder = tmp_path_factory.mktemp("bin")
    forked = str(preloaded.client(folder / "forked"))
    python = preloaded.client(folder / "python", "-m")
    starter = preloaded.client(folder / "starter", "-c", _FORKING.format(python=forked))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def run(*command: str, forking: bool = False) -> subprocess.CompletedProcess[str]:
        first = starter if forking else python
        return subprocess.run([first, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def document(program: Program) -> Document:
    """Runs a program and reads the one document that it prints."""

    def document(*command: str, short: bool = True, forking: bool = False) -> Any:
        done = program(*command, "--json", *(("--repeats", "1", "--threads", "1") if short else ()), forking=forking)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return document
