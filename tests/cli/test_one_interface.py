"""Commands call the Python interface: none of them resolves names, opens models or runs questions itself."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gnothi import cli

FILES = sorted(Path(cli.__file__).parent.glob("*.py"))
WORK = {"resolve", "with_questions", "opened", "opened_methods", "claimed", "execute", "collect", "ask_method", "open_model"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_command_has_a_way_of_its_own(file: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    taken = {name.name for node in imports if (node.module or "").startswith("gnothi.session") for name in node.names}
    assert not taken & WORK
