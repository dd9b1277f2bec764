"""The example of a plug-in: installed beside the project in an environment of its own, used from the command line, tested.

The environment is fresh but for the packages that both depend on: these are borrowed from the environment of the tests, so
that nothing is downloaded.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ORIGIN = "gnothi-example 0.1.0"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Installed:
    """An environment with the project and the plug-in."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "env", with_pip=False)
        self.python = str(folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python")
        own = Path(self.run("-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").stdout.strip())
        (own / "borrowed.pth").write_text("\n".join({sysconfig.get_paths()[key] for key in ("purelib", "platlib")}))
        for name in ("src", "pyproject.toml", "README.md", "LICENSE"):  # a build leaves files beside what it builds
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            (folder / "project").mkdir(exist_ok=True)
            copy(ROOT / name, folder / "project" / name)
        self.plugin = folder / "plugin"
        shutil.copytree(ROOT / "examples" / "plugin", self.plugin)
        offline = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed")
        self.run("-m", "pip", "install", "--no-compile", *offline, str(folder / "project"), str(self.plugin))
        places = self.run("-c", "import gnothi, gnothi_example as e; print(gnothi.__file__, e.__file__)").stdout.split()
        assert all(Path(place).is_relative_to(own) for place in places)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments, in a folder where no source lies."""
        done = subprocess.run(
            [self.python, "-I", *arguments], capture_output=True, text=True, check=False, cwd=Path(self.python).parent
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run("-m", "gnothi", *arguments, "--json").stdout)

    def several(self, *commands: tuple[str, ...], then: str = "") -> str:
        """Command lines, and Python, one after another in one process, which imports torch once; gives what was printed."""
        each = f"for one in {commands!r}: assert main.run(one) == 0, one"
        return self.run("-c", f"from gnothi.cli import main\n{each}\n{then}").stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mill.txt").write_text("# Kestrel\nIt has a mill. The mill of Kestrel was rebuilt in 1874.")
    return tmp_path / "notes"


def test_listings_show_what_it_adds_and_who_brings_it(installed: Installed) -> None:
    added = {(one["kind"], one["name"], one["origin"]) for one in installed.json("list", "plugins")}
    assert added == {
        ("method", "best_sentence", ORIGIN),
        ("signal", "hedging", ORIGIN),
        ("index", "notes", ORIGIN),
    }
    origins = {one["name"]: one["origin"] for one in installed.json("list", "methods")}
    assert (origins["best_sentence"], origins["seakr"]) == (ORIGIN, "gnothi")
    (described,) = installed.json("list", "methods", "best_sentence")
    signal = next(setting for setting in described["settings"] if setting["key"] == "signal")
    assert "hedging" in signal["type"]


def test_all_three_answer_a_question_and_a_run_measures_the_signal_beside_the_others(
    installed: Installed, notes: Path, tmp_path: Path
) -> None:
    out, found_at = tmp_path / "run", ("--index", f"notes:{notes}")
    asked = ("ask", "When was the mill of Kestrel rebuilt?", "--method", "best_sentence", "--set", "threshold=-1")
    run = ("eval", "lab", "--method", "best_sentence,panel,seakr", "--set", "seakr.signal=hedging", "--limit", "2")
    more = ("--set", "signal.samples=2", *found_at, "--out", str(out))
    found = installed.several((*asked, *found_at, "--model", "lab", "--json"), (*run, *more)).partition("\nlab, ")[0]
    assert "1874" in found
    assert "hedging" in found
    assert f'plugins = [\n    "{ORIGIN}",\n]' in (out / "config.toml").read_text("utf-8")
    rows = [json.loads(line) for path in out.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    signals = [row["signals"] for row in rows if row.get("signals")]
    assert len(signals) == 2
    assert all({"hedging", "perplexity"} <= measured.keys() for measured in signals)
    assert '"hedging"' in json.dumps([row for row in rows if row.get("method") == "seakr"])
    (notes / "more.txt").write_text("Another note.")
    with pytest.raises(AssertionError) as raised:  # other evidence: not the same run
        installed.run("-m", "gnothi", *run, *more)
    assert f"notes:{notes}" in str(raised.value)


FACE = """
import gnothi
from gnothi_example.method import best_sentence
from gnothi_example.retriever import Notes
from gnothi_example.signal import hedging
notes, out = {notes!r}, {out!r}
named = {{"settings": {{"signal": "hedging"}}, "index": f"notes:{{notes}}", "limit": 2}}
objects = {{"settings": {{"signal": hedging}}, "index": Notes(notes), "limit": 2}}
gnothi.evaluate("lab", "best_sentence", f"{{out}}/named", **named)
gnothi.evaluate("lab", best_sentence, f"{{out}}/objects", **objects)
"""


def test_rows_are_the_same_by_command_by_name_and_by_object(installed: Installed, notes: Path, tmp_path: Path) -> None:
    given = ("--method", "best_sentence", "--set", "signal=hedging", "--index", f"notes:{notes}", "--limit", "2")
    typed_out = ("--out", str(tmp_path / "typed"))
    installed.several(("eval", "lab", *given, *typed_out), then=FACE.format(notes=str(notes), out=str(tmp_path)))
    typed, named, objects = (rows(tmp_path / name) for name in ("typed", "named", "objects"))
    assert len(typed) == 2
    assert typed == named == objects


def rows(run: Path) -> list[str]:
    """Each without its time."""
    found = [json.loads(line) for line in (run / "rows.jsonl").read_text("utf-8").splitlines()]
    for row in found:
        del row["cost"]["seconds"]
    return [json.dumps(row) for row in found]


def test_its_own_tests_pass(installed: Installed) -> None:
    done = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", *[str(installed.plugin)] * 2)
    assert " passed" in done.stdout
    assert " failed" not in done.stdout
