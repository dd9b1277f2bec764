"""README and docs: their examples run, their links lead somewhere, their commands exist.

The Python blocks of a page are run in order as one program, its ``console`` blocks as one shell script, in an empty folder.
Lines that install or test the project itself are left out. A block after ``<!-- not run: reason -->`` is shown only; one after
``<!-- output of: gnothi ... -->`` is held against what that command prints, numbers aside.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gnothi.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_NOT_OURS = re.compile(r"^(pip|pytest|make|git|cd|python -m (pip|pytest|venv)|source|\.ci/run)\b")
_BLOCK = re.compile(r"(?:<!--(?P<note>[^>]*)-->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Example:
    page: Path
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}-{self.language}"


def examples() -> list[Example]:
    found = []
    for page in PAGES:
        code: dict[str, list[str]] = {"python": [], "console": []}
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["language"] in code and not (block["note"] or "").strip().startswith("not run:"):
                code[block["language"]] += [line for line in block["code"].splitlines() if not _NOT_OURS.match(line)]
        found += [Example(page, language, "\n".join(lines)) for language, lines in code.items() if any(lines)]
    return found


def outputs() -> list[Example]:
    """Commands whose output a page shows, with the output as ``code``."""
    found = []
    for page in PAGES:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            note = (block["note"] or "").strip()
            if note.startswith("output of:"):
                found.append(Example(page, note.removeprefix("output of:").strip(), block["code"]))
    return found


def run(command: list[str], folder: Path) -> str:
    """What a command prints, run in an empty folder with ``gnothi`` on the path."""
    launcher = folder / "bin" / "gnothi"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gnothi "$@"\n')
    launcher.chmod(0o755)
    empty = folder / "here"
    empty.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{launcher.parent}:{os.environ['PATH']}",
        "GNOTHI_CACHE": str(folder / "cache"),  # an example clears it
    }
    finished = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.mark.slow
@pytest.mark.parametrize("example", examples(), ids=str)
def test_example_runs(example: Example, tmp_path: Path) -> None:
    run([sys.executable, "-c", example.code] if example.language == "python" else ["bash", "-euc", example.code], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("example", outputs(), ids=str)
def test_output_is_what_the_command_prints(example: Example, tmp_path: Path) -> None:
    def told(output: str) -> list[str]:
        """What was drafted, searched, written and answered: the rest depends on the machine's arithmetic."""
        wanted = re.compile(r"^( *\d+ draft|    (gate|search|write)|\S)")
        return [re.sub(r"-?\d+\.?\d*( ms| s)?", "#", line) for line in output.splitlines() if wanted.match(line)]

    assert told(run(["bash", "-euc", example.language], tmp_path)) == told(example.code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            titles = re.findall(r"^#+ +(.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        if page.parent.name == "docs" and page.name != "index.md":
            assert f"]({page.name})" in index


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_the_pages_exist(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)gnothi ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= set(COMMANDS)


def test_ci_runs_a_block_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- ci -->\n```console\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    assert block.splitlines()[-1].startswith("pytest")
