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
        self.run("-m", "pip", "install", *offline, str(folder / "project"), str(self.plugin))
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


def test_all_three_answer_a_question(installed: Installed, notes: Path) -> None:
    arguments = ("--method", "best_sentence", "--set", "threshold=-1")
    found = installed.json(
        "ask", "When was the mill of Kestrel rebuilt?", *arguments, "--index", f"notes:{notes}", "--model", "lab"
    )
    assert "1874" in json.dumps(found)
    assert "hedging" in json.dumps(found)


FACES = """
import sys, gnothi
from pathlib import Path
from gnothi.cli import main
from gnothi_example.method import best_sentence
from gnothi_example.retriever import Notes
from gnothi_example.signal import hedging
notes, out = sys.argv[1:]
typed = f"eval lab --method best_sentence,panel,seakr --index notes:{notes} --limit 3 --out {out}/typed".split()
typed += ["--set", "best_sentence.signal=hedging", "--set", "seakr.signal=hedging"]
assert main.run(typed) == 0
named = {"settings": {"signal": "hedging"}, "index": f"notes:{notes}", "limit": 3}
objects = {"settings": {"signal": hedging}, "index": Notes(notes), "limit": 3}
gnothi.evaluate("lab", "best_sentence", f"{out}/named", **named)
gnothi.evaluate("lab", best_sentence, f"{out}/objects", **objects)
Path(notes, "more.txt").write_text("Another note.")
sys.exit(main.run(typed) != 2)  # other evidence: not the same run
"""


def test_rows_are_the_same_by_command_by_name_and_by_object_beside_other_methods(
    installed: Installed, notes: Path, tmp_path: Path
) -> None:
    told = installed.run("-c", FACES, str(notes), str(tmp_path)).stderr
    assert f"notes:{notes}" in told.splitlines()[-1]
    out = tmp_path / "typed"
    assert f'plugins = [\n    "{ORIGIN}",\n]' in (out / "config.toml").read_text("utf-8")
    rows = [json.loads(line) for path in out.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    signals = [row["signals"] for row in rows if row.get("signals")]
    assert len(signals) == 3
    assert all({"hedging", "perplexity"} <= measured.keys() for measured in signals)
    assert '"hedging"' in json.dumps([row for row in rows if row.get("method") == "seakr"])
    typed, named, objects = (of_its_method(tmp_path / name) for name in ("typed", "named", "objects"))
    assert len(typed) == 3
    assert typed == named == objects


def of_its_method(run: Path) -> list[str]:
    """The rows, each without its time."""
    lines = (run / "rows.jsonl").read_text("utf-8").splitlines()
    found = [row for line in lines if (row := json.loads(line))["method"] == "best_sentence"]
    for row in found:
        del row["cost"]["seconds"]
    return [json.dumps(row) for row in found]


def test_its_own_tests_pass(installed: Installed) -> None:
    done = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", *[str(installed.plugin)] * 2)
    assert " passed" in done.stdout
    assert " failed" not in done.stdout
