"""README and docs: their examples run, their links lead somewhere, their commands exist, the guide stays short.

The Python blocks of a page are run in order as one program, its ``console`` blocks as one shell script, in an empty folder.
Lines that install or test the project itself are left out. A block after ``<!-- not run: reason -->`` is shown only, one after
``<!-- needs: MODULE -->`` is run where that is installed. One after ``<!-- output of: gnothi ... -->`` is held against what
that command prints, numbers aside; one after ``<!-- prints -->`` against what the page's blocks before it print. Pages that
the program writes itself (``docs/generate_reference.py``) are written once for all tests.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gnothi import methods
from gnothi.cli.main import COMMANDS
from gnothi.config import settings_of
from gnothi.models.settings import ModelSettings
from gnothi.signals import registry as signals
from gnothi.training.reader.stages import ReaderTraining
from gnothi.training.reranker.pairs import RerankerSettings
from gnothi.training.self_knowledge.settings import SelfKnowledgeSettings
from tests.preloaded import Preloaded

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
APART = ("results", "papers", "reference")
"""Folders of pages to look things up in; all others are the guide."""
MOST_WORDS = 25_000
"""Of the guide, and of the pages of results."""
MOST_WORDS_OF_README = 600
_NOT_OURS = re.compile(r"^(pip|pytest|make|git|cd|python -m (pip|pytest|venv)|source|\.ci/run)\b")
_BLOCK = re.compile(r"(?:<!--(?P<note>[^>]*)-->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Example:
    page: Path
    language: str
    code: str
    prints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}-{self.language}"


def examples() -> list[Example]:
    found = []
    for page in PAGES:
        code: dict[str, list[str]] = {"python": [], "console": []}
        prints: dict[str, list[str]] = {"python": [], "console": []}
        before = ""
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            note, language = (block["note"] or "").strip(), block["language"]
            if note == "prints" and before:
                prints[before].append(block["code"])
            before = language if language in code and _runs(note) else ""
            if before:
                code[language] += [line for line in block["code"].splitlines() if not _NOT_OURS.match(line)]
        found += [
            Example(page, language, "\n".join(lines), tuple(prints[language])) for language, lines in code.items() if any(lines)
        ]
    return found


def _runs(note: str) -> bool:
    """Whether a block with that note can be run here."""
    if note.startswith("needs:"):
        try:
            return importlib.util.find_spec(note.removeprefix("needs:").strip()) is not None
        except ModuleNotFoundError:
            return False
    return not note.startswith("not run:")


def outputs() -> list[Example]:
    """Commands whose output a page shows, with the output as ``code``."""
    found = []
    for page in PAGES:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            note = (block["note"] or "").strip()
            if note.startswith("output of:"):
                found.append(Example(page, note.removeprefix("output of:").strip(), block["code"]))
    return found


@functools.cache
def generated() -> dict[str, str]:
    """The pages that the program writes, by path below ``docs/``."""
    spec = importlib.util.spec_from_file_location("generate_reference", DOCS / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: Callable[[], dict[str, str]] = module.pages
    return pages()


def run(example: Example, folder: Path, preloaded: Preloaded) -> str:
    """What an example prints, run in an empty folder with ``gnothi`` on the path. README's Python starts from nothing."""
    programs = folder / "bin"
    programs.mkdir()
    for name, before in (("python", ()), ("gnothi", ("-m", "gnothi"))):
        program = preloaded.client(programs / name, *before)
        if example.page.name == "README.md" and example.language == "python":
            program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *before])} "$@"\n')
    empty = folder / "here"
    empty.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "GNOTHI_CACHE": str(folder / "cache"),  # an example clears it
    }
    command = [programs / "python", "-c"] if example.language == "python" else ["bash", "-euc"]
    finished = subprocess.run([*command, example.code], cwd=empty, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{example.code}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("example", examples(), ids=str)
def test_example_runs(example: Example, tmp_path: Path, preloaded: Preloaded) -> None:
    output = "\n".join(_decisions(run(example, tmp_path, preloaded)))
    for shown in example.prints:
        assert "\n".join(_decisions(shown)) in output


def _decisions(output: str) -> list[str]:
    """What was drafted, searched, written and answered: the rest depends on the machine's arithmetic."""
    wanted = re.compile(r"^( *\d+ draft|    (gate|search|write)|\S)")
    return [re.sub(r"-?\d+\.?\d*( ms| s)?", "#", line) for line in output.splitlines() if wanted.match(line)]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("example", outputs(), ids=str)
def test_output_is_what_the_command_prints(example: Example, tmp_path: Path, preloaded: Preloaded) -> None:
    shown = run(replace(example, language="console", code=example.language), tmp_path, preloaded)
    assert _decisions(shown) == _decisions(example.code)


def test_the_picture_of_ask_shows_what_the_guide_shows() -> None:
    """Both are of the same command: of the answer's lines (numbers aside), none is missing in the picture."""
    (shown,) = [example for example in outputs() if example.page.name == "ask.md"]
    picture = (DOCS / "pictures" / "ask.svg").read_text(encoding="utf-8")
    words = set(re.findall(r"[A-Za-z]{4,}", picture.replace("&#160;", " ")))
    assert set(re.findall(r"[A-Za-z]{4,}", shown.code)) <= words


def test_pictures_of_results_show_what_the_pages_tables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS / "pictures")
    drawings: dict[str, Callable[[], Any]] = runpy.run_path(str(DOCS / "pictures" / "results.py"))["DRAWINGS"]
    for name, drawing in drawings.items():
        assert drawing().svg() == (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8"), (
            "python docs/pictures/results.py"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Also for who reads the page in the repository: no link leads to a page that only the built site has."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            titles = re.findall(r"^#+ +(.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, (
                f"{page.name}: {target}"
            )


def test_every_page_is_in_the_navigation() -> None:
    """mkdocs says so, too, but only as an information."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS)} | generated().keys()
    assert {page for page in pages if not re.search(rf"[ :]{re.escape(page)}$", navigation, re.MULTILINE)} == set()


def test_every_page_of_the_guide_is_listed_on_its_first_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for folder in ("how-to", "concepts", "project"):
        assert {page.name for page in (DOCS / folder).glob("*.md") if f"]({folder}/{page.name})" not in index} == set()


def test_every_page_of_results_is_listed_on_their_first_page() -> None:
    index = (DOCS / "results" / "index.md").read_text(encoding="utf-8")
    assert {page.name for page in (DOCS / "results").glob("*.md") if f"]({page.name}) |" not in index} == {"index.md"}


def test_the_guide_is_short_enough_to_be_read() -> None:
    guide = [page for page in PAGES if page.is_relative_to(DOCS) and page.relative_to(DOCS).parts[0] not in APART]
    assert words(guide) <= MOST_WORDS
    assert words([ROOT / "README.md"]) <= MOST_WORDS_OF_README


def test_the_results_are_short_enough_to_be_read() -> None:
    assert words((DOCS / "results").glob("*.md")) <= MOST_WORDS


def words(pages: Iterable[Path]) -> int:
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_named_in_the_pages_exist(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)gnothi ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("page", sorted((DOCS / "papers").glob("*.md")), ids=lambda page: page.stem)
def test_files_and_tests_named_in_a_papers_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"`((?:tests|src|benchmarks|docs)/[\w./-]+)`", text)
    assert not [one for one in files if not (ROOT / one).exists()]
    known = {
        name for file in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    }
    assert not set(re.findall(r"`(test_\w+)`", text)) - known


@pytest.mark.parametrize("page", sorted((DOCS / "papers").glob("*.md")), ids=lambda page: page.stem)
def test_settings_that_a_papers_page_gives_a_value_exist(page: Path) -> None:
    known = {*methods.names(), *signals.names()}.union(*(methods.spec(name).settings for name in methods.names()))
    known |= {
        key for kind in (SelfKnowledgeSettings, ReaderTraining, RerankerSettings, ModelSettings) for key in settings_of(kind)
    }
    named = re.findall(r"`(?:model\.)?([a-z_]+(?:\.[a-z_]+)?)`: ", page.read_text(encoding="utf-8"))
    assert set(named) - known == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_reference(command: str) -> None:
    assert f"## `gnothi {command}`" in generated()["reference/cli.md"]


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_in_the_reference_with_its_settings(name: str) -> None:
    (section,) = re.findall(rf"^## `{name}`\n(.*?)(?=^## |\Z)", generated()["reference/methods.md"], re.MULTILINE | re.DOTALL)
    for setting in methods.describe(name).settings:
        assert f"| `{setting.key}` |" in section


@pytest.mark.parametrize("name", signals.names())
def test_every_signal_is_explained(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "concepts" / "gates.md").read_text(encoding="utf-8")


def test_nothing_of_the_site_comes_from_elsewhere() -> None:
    """No fonts, no scripts: it is built, and read, without a network."""
    assert "font: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        assert "```mermaid" not in page.read_text(encoding="utf-8")  # the theme would fetch its script
    for picture in (DOCS / "pictures").glob("*.svg"):
        assert not re.search(r"(?:href|src)=\"https?:|url\(.?https?:", picture.read_text(encoding="utf-8"))


def test_ci_runs_a_block_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- ci -->\n```console\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    assert block.splitlines()[-1].startswith("pytest")


def test_ci_builds_the_site() -> None:
    assert re.search(r"^step docs make docs$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
