"""The authors' code as an oracle, where it lies beside this project: bare git folders, read with `git show`, copied nowhere.

``$GNOTHI_MIRRORS``, or ``.mirror`` in a parent folder, holds OWNER+NAME/repo. What a file imports that is not installed (vLLM,
spaCy) is replaced by stubs. Each oracle has a twin of our own beside it, written from what paper and code do: it is
held against ours everywhere, the authors' code where it is.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

CASES = 500
FAST, LONG = 200, 2_000


@cache
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


def function(repository: str, path: str, name: str, names: Mapping[str, Any], instead: Mapping[str, str] | None = None) -> Any:
    """One function of a file whose other lines cannot be run here (CLASS.NAME: a method); ``names`` are what it uses,
    ``instead`` what is written into it, by what stands there."""
    known = dict(names)
    exec(_code(repository, path, name, tuple((instead or {}).items())), known)
    return known[name.rpartition(".")[2]]


@cache
def _code(repository: str, path: str, name: str, instead: tuple[tuple[str, str], ...]) -> types.CodeType:
    text = source(repository, path)
    for before, after in instead:
        assert before in text, before
        text = text.replace(before, after)
    inside: ast.AST = ast.parse(text)
    *classes, name = name.split(".")
    for one in classes:
        (inside,) = (node for node in ast.walk(inside) if isinstance(node, ast.ClassDef) and node.name == one)
    (found,) = (
        node for node in ast.walk(inside) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    return compile(ast.Module([found], []), f"{repository}/{path}", "exec")
