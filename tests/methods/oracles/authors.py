"""The authors' code as an oracle, where it lies beside this project: bare git folders, read with `git show`, copied nowhere.

``$GNOTHI_MIRRORS``, or ``.mirror`` in a parent folder, holds OWNER+NAME/repo. What a file imports that is not installed (vLLM,
spaCy) is replaced by stubs. Each oracle has a twin of our own beside it, written from what paper and code do: it is
held against ours everywhere, the authors' code where it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

CASES = 1_000


def source(repository: str, path: str) -> str:
    """A file of the newest commit of OWNER/NAME. Skips the test where there is none."""
    given = os.environ.get("GNOTHI_MIRRORS")
    folders = [Path(given)] if given else [parent / ".mirror" for parent in Path(__file__).resolve().parents]
    for folder in folders:
        mirror = folder / repository.replace("/", "+") / "repo"
        if mirror.is_dir():
            command = ["git", f"--git-dir={mirror}", "show", f"HEAD:{path}"]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pytest.skip(f"no mirror of {repository} in the parents of the project, and GNOTHI_MIRRORS names no folder that has it")


def module(repository: str, path: str, stubs: Mapping[str, Mapping[str, Any]] | None = None) -> Any:
    """The file run as a module of a package ``authors``; ``stubs`` are what it imports: the names that each module has."""
    code = compile(source(repository, path), f"{repository}/{path}", "exec")
    made = types.ModuleType("authors.module")
    made.__package__ = "authors"
    package = types.ModuleType("authors")
    package.__path__ = []
    others = {"authors": package, "authors.module": made}
    for name, names in (stubs or {}).items():
        others[name] = types.ModuleType(name)
        vars(others[name]).update(names)
    with patch.dict(sys.modules, others):
        exec(code, vars(made))
    return made


def function(repository: str, path: str, name: str, names: Mapping[str, Any]) -> Any:
    """One function of a file whose other lines cannot be run (they read data when imported); ``names`` are what it uses."""
    import ast

    tree = ast.parse(source(repository, path))
    (found,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    known = dict(names)
    exec(compile(ast.Module([found], []), f"{repository}/{path}", "exec"), known)
    return known[name]
