"""Importing is cheap: heavy libraries load inside the functions that need them."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import gnothi
from tests.patience import PATIENCE

HEAVY = {"torch", "transformers", "safetensors", "matplotlib", "jinja2", "trl", "peft", "vllm", "pypdf", "pypdfium2", "bs4"}
SOURCE = Path(gnothi.__file__).parents[1]


def loaded_after(code: str) -> set[str]:
    finished = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        timeout=PATIENCE,
    )
    return set(finished.stdout.split())


def test_import_gnothi_loads_no_other_package() -> None:
    assert not {name for name in loaded_after("import gnothi") if name.partition(".")[0] in HEAVY | {"numpy", "scipy", "click"}}


PACKAGES = [module.name for module in pkgutil.iter_modules(gnothi.__path__, "gnothi.") if module.ispkg]


@pytest.mark.parametrize("name", [*PACKAGES, "gnothi.types", "gnothi.config", "gnothi.protocols", "gnothi.session.plan"])
def test_packages_and_contracts_load_nothing_heavy(name: str) -> None:
    assert not {loaded for loaded in loaded_after(f"import {name}") if loaded.partition(".")[0] in HEAVY}
