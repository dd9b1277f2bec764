"""The fast tests of what a change touches, nearest first, in a few minutes: the last part of ``make ready``.

    python -m tools.ready                   what differs from the upstream branch, or from the last commit but one
    python -m tools.ready --since v0.1      what differs from another commit
    python -m tools.ready --list            only list the test files, with their distance

The distance of a test file is the number of imports between it and the nearest changed module; a module named in a string
(``"gnothi.x.y"``) counts as imported. A changed file that is no module (a template, a recipe) counts as the modules beside it.
Tests run from near to far; after ``--minutes`` no further one starts. CI runs them all.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"gnothi": "src/gnothi", "tests": "tests", "benchmarks": "benchmarks", "tools": "tools", "docs": "docs"}
"""Where the modules of each package lie."""
ALWAYS = ("tests/test_docs.py", "tests/test_repository.py")
"""They read the tree instead of importing it."""
UNTIL = "READY_UNTIL"  # a name with GNOTHI_ would be a setting
"""The environment variable that says when no further test starts, in seconds since 1970."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.ready", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--since", metavar="COMMIT", help="what the change is compared with")
    parser.add_argument("--minutes", type=float, default=4.0, help="after this many, no further test starts (default 4)")
    parser.add_argument("--list", action="store_true", help="only list the test files, with their distance")
    given = parser.parse_args(arguments)
    since = given.since or default_base()
    changed = changed_files(since)
    distances = nearest(changed, modules())
    sys.stdout.write(f"{len(changed)} files differ from {since}; {len(distances)} test files import them.\n")
    if given.list:
        for path, distance in distances.items():
            sys.stdout.write(f"{distance:3d} {path}\n")
        return 0
    return run([*ALWAYS, *(path for path in distances if path not in ALWAYS)], given.minutes * 60)


# --- what changed ------------------------------------------------------------------------------------------------------


def _git(*arguments: str) -> list[str]:
    finished = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return finished.stdout.splitlines() if finished.returncode == 0 else []


def default_base() -> str:
    """Where this branch left the one it is pushed to; the commit before, where there is none or nothing was committed since."""
    for branch in ("@{upstream}", "origin/main"):
        base = _git("merge-base", "HEAD", branch)
        if base and base != _git("rev-parse", "HEAD"):
            return base[0]
    return "HEAD~1"


def changed_files(since: str) -> list[str]:
    """Paths from the root that differ from a commit, those git does not know yet included."""
    if not _git("rev-parse", "--verify", f"{since}^{{commit}}"):
        raise SystemExit(f"got --since {since}, expected a commit that git knows")
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*_git("diff", "--name-only", since), *untracked})


# --- what imports it ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    imports: frozenset[str] = field(default=frozenset())

    @property
    def is_test(self) -> bool:
        return self.path.name.startswith("test_")


def modules(root: Path = ROOT) -> dict[str, Module]:
    """Every module of the project by name, with the modules of the project that it imports."""
    paths = {}
    for package, folder in SOURCES.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = [package, *path.relative_to(root / folder).with_suffix("").parts]
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: Module(name, path, frozenset(_imports(name, path, paths.keys()))) for name, path in paths.items()}


def _imports(name: str, path: Path, known: Collection[str]) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8"))):
        for target in _targets(node, package):
            if target in known and target != name:
                yield target


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, but for what only a type checker reads."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child)


def _targets(node: ast.AST, package: str) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*above, *([module] if module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Constant(value=str() as text) if text.startswith("gnothi."):
            yield text.partition(":")[0]


def nearest(changed: Iterable[str], known: Mapping[str, Module], root: Path = ROOT) -> dict[str, int]:
    """Test files (paths from the root) that reach what changed, with the number of imports between, from near to far."""
    importers: dict[str, set[str]] = {name: set() for name in known}
    for module in known.values():
        for target in module.imports:
            importers[target].add(module.name)
    distances = {name: 0 for path in changed for name in _concerned(root / path, known)}
    queue = list(distances)
    for name in queue:  # grows while it is walked: breadth first
        for importer in importers[name] - distances.keys():
            distances[importer] = distances[name] + 1
            queue.append(importer)
    return {str(known[name].path.relative_to(root)): distance for name, distance in distances.items() if known[name].is_test}


def _concerned(path: Path, known: Mapping[str, Module]) -> list[str]:
    """The module that a changed file is; for any other file, the modules of its folder."""
    own = [module.name for module in known.values() if module.path == path]
    return own or [module.name for module in known.values() if module.path.parent == path.parent]


# --- running -----------------------------------------------------------------------------------------------------------


def run(files: Sequence[str], seconds: float) -> int:
    sys.stdout.write(f"Tests start for {seconds / 60:g} minutes, from near to far; what is skipped then runs in CI.\n")
    sys.stdout.flush()
    environment = os.environ | {UNTIL: str(time.time() + seconds)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--maxfail", "5", "-p", "tools.ready", *files]
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code


def pytest_runtest_setup() -> None:
    """A hook of pytest, in each of its processes: once the time is over, a test is skipped."""
    if time.time() > float(os.environ.get(UNTIL, "inf")):
        pytest.skip("make ready: the time was over; CI runs it")


if __name__ == "__main__":
    sys.exit(main())
