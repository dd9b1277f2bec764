from __future__ import annotations

from pathlib import Path

import pytest

from tests.messages import refused
from tools import ready

TREE = {
    "src/gnothi/__init__.py": "",
    "src/gnothi/low.py": "",
    "src/gnothi/middle.py": "from gnothi.low import thing\n",
    "src/gnothi/high.py": "def late():\n    import gnothi.middle\n",
    "src/gnothi/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gnothi.low import thing\n",
    "src/gnothi/named.py": 'COMMAND = "gnothi.high:run"\n',
    "src/gnothi/pages/__init__.py": "",
    "src/gnothi/pages/page.html": "",
    "tests/test_low.py": "from gnothi import low\n",
    "tests/test_high.py": "import gnothi.high\n",
    "tests/test_named.py": "import gnothi.named\n",
    "tests/test_typed.py": "import gnothi.typed\n",
    "tests/deep/test_relative.py": "from ..helper import help\n",
    "tests/helper.py": "import gnothi.low\n",
    "tests/test_pages.py": "import gnothi.pages\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in TREE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def near(tree: Path, *changed: str) -> dict[str, int]:
    return ready.nearest(changed, ready.modules(tree), tree)


def test_tests_that_import_it_come_from_near_to_far(tree: Path) -> None:
    found = near(tree, "src/gnothi/low.py")
    assert found == {
        "tests/test_low.py": 1,
        "tests/deep/test_relative.py": 2,
        "tests/test_high.py": 3,
        "tests/test_named.py": 4,
    }
    assert list(found.values()) == sorted(found.values())


def test_a_test_that_changed_is_nearest(tree: Path) -> None:
    assert near(tree, "tests/test_low.py") == {"tests/test_low.py": 0}


def test_a_file_that_is_no_module_counts_as_its_folder(tree: Path) -> None:
    assert near(tree, "src/gnothi/pages/page.html") == {"tests/test_pages.py": 1}


def test_what_is_gone_counts_as_its_folder(tree: Path) -> None:
    assert near(tree, "src/gnothi/pages/gone.py") == {"tests/test_pages.py": 1}


def test_what_nothing_imports(tree: Path) -> None:
    assert near(tree, "docs/index.md") == {}


def test_modules_of_the_project_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ("gnothi.methods", "gnothi.signals", "tests.methods", "tests.signals")
    folders = {one: f"{ready.SOURCES[one.partition('.')[0]]}/{one.partition('.')[2]}" for one in parts}
    monkeypatch.setattr(ready, "SOURCES", folders)
    known = ready.modules()
    assert "gnothi.signals.kinds.gram" in known["gnothi.methods.seakr"].imports | known["tests.signals.test_gram"].imports
    assert "tests/methods/test_seakr.py" in ready.nearest(["src/gnothi/methods/seakr.py"], known)


def test_after_the_time_no_further_test_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ready.UNTIL, "1")
    with pytest.raises(pytest.skip.Exception):
        ready.pytest_runtest_setup()
    monkeypatch.delenv(ready.UNTIL)
    ready.pytest_runtest_setup()


def test_an_unknown_commit_is_refused() -> None:
    with refused(SystemExit):
        ready.changed_files("no-such-commit")
