"""The wheel alone: installed in an empty environment, started in an empty folder, outside any clone.

Of the packages that are installed here, that environment sees those that the wheel declares, and what these declare: what is
not declared is missing there, as it is for a user. Nothing is downloaded. ``tools.release`` installs from the index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gnothi

ROOT = Path(__file__).parents[1]
MOST_BYTES = 20_000_000
EXTRAS = ("local", "documents", "report", "serving", "mcp")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of the files that git knows: a build leaves folders behind, and takes what it finds in them."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\0"
    ):
        if name.startswith("src/") or "/" not in name:
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                target.write_bytes((ROOT / name).read_bytes())
    built = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(out),
        str(tree),
    ]
    subprocess.run(built, check=True)
    (made,) = out.iterdir()
    return made


def needed(one: Distribution, extras: frozenset[str], found: dict[tuple[str, str], Distribution]) -> None:
    """Adds what a distribution declares, and what that declares, by name and extra."""
    for requirement in map(Requirement, one.requires or ()):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            continue
        name = canonicalize_name(requirement.name)
        asked = {(name, extra) for extra in requirement.extras | {""}}
        if asked <= found.keys():
            continue
        other = one if name == "gnothi" else distribution(name)
        found.update(dict.fromkeys(asked, other))
        needed(other, frozenset(requirement.extras), found)


def environment(folder: Path, wheel: Path, extras: tuple[str, ...]) -> Path:
    """The Python of a new environment with the wheel, and with what it declares linked into it."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # what is there counts as installed

    def run(*command: str) -> str:
        return subprocess.run(command, env=outside, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel))
    packages = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    (itself,) = packages.glob("gnothi-*.dist-info")
    found: dict[tuple[str, str], Distribution] = {}
    try:
        needed(PathDistribution(itself), frozenset(extras), found)
    except PackageNotFoundError as absent:
        pytest.skip(f"{absent.name} is not installed here")
    for one in set(found.values()):
        for entry in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (packages / entry).exists():
                (packages / entry).symlink_to(Path(str(one.locate_file(entry))))
    run(*pip, "check")
    return python


class Installed:
    """Runs the commands of an installed wheel in a folder, with nothing of this checkout."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.command, self.folder = python.with_name("gnothi"), folder
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
        self.environment = kept | {"HOME": str(folder), "PYTHONNOUSERSITE": "1", "HF_HUB_OFFLINE": "1"}

    def __call__(self, *arguments: str) -> str:
        command = [str(self.command), *arguments]
        ended = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{arguments}: {ended.stderr}"
        return ended.stdout


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(environment(tmp_path_factory.mktemp("core"), wheel, ()), tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(environment(tmp_path_factory.mktemp("full"), wheel, EXTRAS), tmp_path_factory.mktemp("empty"))


def test_it_is_small_typed_and_licensed(wheel: Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = f"gnothi-{gnothi.__version__}.dist-info"
    assert {"gnothi/py.typed", f"{metadata}/licenses/LICENSE"} <= names
    assert {name.partition("/")[0] for name in names} == {"gnothi", metadata}


def test_it_holds_every_file_of_the_package(wheel: Path) -> None:
    known = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    with zipfile.ZipFile(wheel) as archive:
        assert {name.removeprefix("src/") for name in known if (ROOT / name).is_file()} <= set(archive.namelist())


def test_the_core_starts_without_extras(core: Installed) -> None:
    assert gnothi.__version__ in core("--version")
    assert "seakr" in core("list", "methods")
    assert "index" in core("--help")
    (core.folder / "notes.md").write_text("# The tower of Mel\n\nThe tower of Mel was built by Ona Brisk.\n")
    core("index", "build", "notes.md", "--out", "index")
    assert "Ona Brisk" in core("index", "search", "index", "tower of Mel")


def test_from_a_question_to_a_report(full: Installed) -> None:
    (full.folder / "notes.md").write_text("# The tower of Mel\n\nThe tower of Mel was built by Ona Brisk.\n")
    full("index", "build", "notes.md", "--out", "index")
    found = json.loads(
        full("ask", "Who built the tower of Mel?", "--model", "lab", "--index", "index", "--method", "rag", "--json")
    )
    assert found["evidence"]
    full("eval", "lab", "--method", "direct,seakr", "--limit", "2", "--out", "run")
    full("report", "run", "--html", "report.html")
    assert "<html" in (full.folder / "report.html").read_text("utf-8")


@pytest.mark.parametrize("command", ["mcp", "serve"])
def test_servers_are_there(full: Installed, command: str) -> None:
    assert "--index" in full(command, "--help")
