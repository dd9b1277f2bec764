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
HEAVY |= {
    "scipy",
    "pandas",
    "sklearn",
    "httpx2",
    "httpx",
    "openai",
    "sentence_transformers",
    "ray",
    "starlette",
    "uvicorn",
    "mcp",
}
READING = {"numpy", "rich", "tantivy"}
"""Of which a command that answers has need."""
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
    return set(finished.stdout.splitlines()[-1].split())


COMMANDS: dict[str, tuple[set[str], list[str]]] = {
    "say what there is": (
        HEAVY | READING,
        ["--help", "--version", "nonsense", "eval --help", "eval nope", "serve --help", "serve --port x", "report --help",
         "train --help", "lab --help"],
    ),
    "ask without a question": (HEAVY | READING - {"numpy"}, ["ask --help", "ask", "ask x --nonsense"]),
    "check what was given": (
        HEAVY,
        ["ask x --method nope", "ask x --method rag --set k=abc", "ask x --set model.nope=1", "ask x --model nope:",
         "ask x --model ./nowhere", "ask x --index ./nowhere", "ask x --config ./nowhere", "ask x --calibration ./nowhere",
         "ask --file ./nowhere --out ./run", "eval nope --out ./run", "calibrate --help", "calibrate nope --out ./c.toml",
         "serve --method nope", "index --help", "index build ./nowhere", "index build ./nowhere --out ./index",
         "index search ./nowhere x", "report ./nowhere", "methods", "methods nope", "datasets"],
    ),
}  # fmt: skip
"""Packages that commands do without, which end before a model or an index is opened."""


@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_imports_no_more_than_it_needs(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another in one process: told is the first that imports what it should not."""
    monkeypatch.chdir(tmp_path)
    without, commands = COMMANDS[what]
    code = f"""
import sys
from gnothi.cli import main
for command in {commands!r}:
    main.run(command.split())
    found = {without!r} & {{name.partition(".")[0] for name in sys.modules}}
    assert not found, f"gnothi {{command}} imports {{', '.join(sorted(found))}}"
"""
    loaded_after(code)


@pytest.mark.slow
def test_a_question_to_the_laboratory_takes_torch_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs the extra 'local'")
    monkeypatch.chdir(tmp_path)
    loaded = loaded_after("from gnothi.cli import main; main.run(('ask', 'Who directed The Amber Harbour?'))")
    assert not {name.partition(".")[0] for name in loaded} & (HEAVY | {"sympy"}) - {"torch", "safetensors"}
    assert "torch._dynamo" not in loaded


def test_the_interface_is_all_that_gnothi_holds_and_importing_it_changes_nothing() -> None:
    code = "import os; before = dict(os.environ); import gnothi; assert dir(gnothi) == sorted(gnothi.__all__), dir(gnothi); "
    loaded_after(code + "assert dict(os.environ) == before")


def test_import_gnothi_loads_no_other_package() -> None:
    assert not {name for name in loaded_after("import gnothi") if name.partition(".")[0] in HEAVY | {"numpy", "scipy", "click"}}


PACKAGES = [module.name for module in pkgutil.iter_modules(gnothi.__path__, "gnothi.") if module.ispkg]


def test_packages_and_contracts_load_nothing_heavy() -> None:
    """Each as the first of the project that is imported, in one process: told is the first that loads what it should not."""
    names = [*PACKAGES, "gnothi.types", "gnothi.config", "gnothi.protocols", "gnothi.session.plan"]
    code = f"""
import importlib, sys
for name in {names!r}:
    for module in [module for module in sys.modules if module.partition(".")[0] == "gnothi"]:
        del sys.modules[module]
    importlib.import_module(name)
    found = {HEAVY!r} & {{module.partition(".")[0] for module in sys.modules}}
    assert not found, f"{{name}} imports {{', '.join(sorted(found))}}"
"""
    assert len(names) > 10
    loaded_after(code)
