"""A release by one command, and its artefacts.

    python -m tools.release 0.2.0             changes version and changelog, commits, tags, and puts the artefacts into dist/
    python -m tools.release 0.2.0 --dry-run   the same in a copy that is removed; only prints what would be released
    python -m tools.release --artefacts dist  only the artefacts of the commit that is checked out

All is done in a fresh clone; what is here changes last. Artefacts: source distribution, wheel, bill of materials (CycloneDX:
what the wheel needs without extras, in the versions of constraints.txt), release notes, SHA256SUMS. The tools that make them
are installed in an environment of their own from the package index; nothing else is asked of a network.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("build", "cyclonedx-bom")
"""What makes the artefacts, in the versions of constraints.txt."""
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
PLACES = {
    "src/gnothi/version.py": re.compile(r'(?<=^__version__ = ")[^"]+(?="$)', re.MULTILINE),
    "CITATION.cff": re.compile(r"(?<=^version: )\S+$", re.MULTILINE),
}
"""Where the version stands, but for the changelog."""
_NEXT = "## Unreleased"
_SECTION = re.compile(r"^## (?P<name>\S+).*\n(?P<text>(?:(?!## ).*(?:\n|\Z))*)", re.MULTILINE)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("version", nargs="?", metavar="VERSION", help="MAJOR.MINOR.PATCH")
    parser.add_argument("--dry-run", action="store_true", help="change nothing here, and keep nothing")
    parser.add_argument(
        "--artefacts", type=Path, metavar="FOLDER", help="only make the artefacts of the commit that is checked out"
    )
    given = parser.parse_args(arguments)
    if (given.version is None) == (given.artefacts is None):
        parser.error("expected either VERSION or --artefacts FOLDER")
    with tempfile.TemporaryDirectory(prefix="gnothi-release-") as folder:
        copy, out = Path(folder, "gnothi"), Path(folder, "dist")
        if given.version is not None:
            check(ROOT, given.version)
        clone(ROOT, copy)
        if given.version is not None:
            stamp(copy, given.version, datetime.datetime.now(datetime.UTC).date())
        artefacts(copy, out, Path(folder, "environments"))
        sys.stdout.write(listing(out))
        if given.dry_run:
            sys.stdout.write("A dry run: nothing was changed, and nothing kept.\n")
            return 0
        kept = given.artefacts or ROOT / "dist"
        kept.mkdir(parents=True, exist_ok=True)
        if given.version is not None:
            adopt(ROOT, copy, given.version)
        shutil.copytree(out, kept, dirs_exist_ok=True)
        if given.version is not None:
            sys.stdout.write(f"Committed and tagged. To publish: git push --atomic origin HEAD v{given.version}\n")
    return 0


# --- what must hold ----------------------------------------------------------------------------------------------------


def check(root: Path, version: str) -> None:
    """Whether the commit that is checked out may become this version.

    Raises:
        SystemExit: it may not; with all reasons.
    """
    reasons = []
    if _run("git", "status", "--porcelain", cwd=root):
        reasons.append("got changes that are not committed, expected a clean tree: commit or stash them")
    commit, passed = _run("git", "rev-parse", "HEAD", cwd=root), _git_folder(root) / "ci-passed"
    if not passed.is_file() or passed.read_text("utf-8").strip() != commit:
        reasons.append(f"got commit {commit[:12]}, expected one that CI passed: run `make ci`")
    if not _run("git", "branch", "--show-current", cwd=root):
        reasons.append("got a commit without a branch, expected a branch: check one out")
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    versions = [name for name in _sections(changes) if VERSION.fullmatch(name)]
    versions += [
        tag.removeprefix("v") for tag in _run("git", "tag", "--list", "v*", cwd=root).split() if VERSION.fullmatch(tag[1:])
    ]
    last = max((_numbers(known) for known in versions), default=(0, 0, 0))
    if not VERSION.fullmatch(version) or _numbers(version) <= last:
        reasons.append(f"got version {version}, expected MAJOR.MINOR.PATCH above {'.'.join(map(str, last))}")
    if not re.search(r"^- ", _sections(changes).get("Unreleased", ""), re.MULTILINE):
        reasons.append('got no entry under "Unreleased" of CHANGELOG.md, expected what users will notice')
    if reasons:
        raise SystemExit("Not released.\n" + "\n".join(f"- {reason}" for reason in reasons))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _git_folder(root: Path) -> Path:
    return Path(_run("git", "rev-parse", "--path-format=absolute", "--git-dir", cwd=root))


# --- version and changelog ---------------------------------------------------------------------------------------------


def clone(root: Path, copy: Path) -> None:
    """A clone of the commit that is checked out, with the name under which commits are made here."""
    _run("git", "clone", "--quiet", "--no-local", str(root), str(copy), cwd=root)
    _run("git", "checkout", "--quiet", "--detach", _run("git", "rev-parse", "HEAD", cwd=root), cwd=copy)
    for key in ("user.name", "user.email"):
        value = subprocess.run(["git", "config", key], cwd=root, capture_output=True, text=True, check=False).stdout.strip()
        if value:
            _run("git", "config", key, value, cwd=copy)


def stamp(copy: Path, version: str, day: datetime.date) -> None:
    """Version and changelog of a clone, committed and tagged."""
    for path, place in PLACES.items():
        text, count = place.subn(version, (copy / path).read_text("utf-8"))
        if count != 1:
            raise SystemExit(f"{path}: got {count} lines with a version, expected one")
        (copy / path).write_text(text, "utf-8")
    changes = (copy / "CHANGELOG.md").read_text("utf-8")
    (copy / "CHANGELOG.md").write_text(dated(changes, version, day), "utf-8")
    _run("git", "commit", "--quiet", "--all", "--message", f"Gnothi {version}", cwd=copy)
    _run("git", "tag", "--annotate", f"v{version}", "--message", f"Gnothi {version}", cwd=copy)


def dated(changes: str, version: str, day: datetime.date) -> str:
    """The changelog with "Unreleased" under this version and date, and a new, empty section above."""
    return re.sub(rf"^{_NEXT}$", f"{_NEXT}\n\n## {version} - {day.isoformat()}", changes, count=1, flags=re.MULTILINE)


def notes(changes: str, version: str) -> str:
    """What the changelog says of a version."""
    sections = _sections(changes)
    if version not in sections:
        raise SystemExit(f'CHANGELOG.md: got no section "## {version}", expected one')
    return sections[version].strip() + "\n"


def _sections(changes: str) -> dict[str, str]:
    return {found["name"]: found["text"] for found in _SECTION.finditer(changes)}


def adopt(root: Path, copy: Path, version: str) -> None:
    """Commit and tag of the clone, here."""
    _run("git", "fetch", "--quiet", str(copy), f"refs/tags/v{version}:refs/tags/v{version}", cwd=root)
    _run("git", "merge", "--quiet", "--ff-only", f"v{version}", cwd=root)


# --- artefacts ---------------------------------------------------------------------------------------------------------


def artefacts(tree: Path, out: Path, environments: Path) -> None:
    """Made of a clean clone ``tree`` into ``out``; the wheel is installed by its hash and started.

    Raises:
        SystemExit: a tool failed, or the source distribution builds another wheel than the tree.
    """
    version = _version(tree)
    out.mkdir(parents=True)
    (out / "RELEASE_NOTES.md").write_text(
        notes((tree / "CHANGELOG.md").read_text("utf-8"), version if _released(tree, version) else "Unreleased"), "utf-8"
    )
    # The wheel holds the time of the commit, so that its bytes do not depend on when it is built.
    environment = {
        "PIP_CONSTRAINT": str(tree / "constraints.txt"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": "",
        "SOURCE_DATE_EPOCH": _run("git", "log", "-1", "--format=%ct", cwd=tree),
    }
    tools, installed = _made(environments / "tools", "--upgrade-deps"), _made(environments / "wheel", "--without-pip")
    pip = (str(tools), "-m", "pip")
    _run(*pip, "install", "--quiet", *TOOLS, cwd=out, environment=environment)
    _run(str(tools), "-m", "build", "--outdir", str(out), str(tree), cwd=out, environment=environment)
    again = environments / "again"
    _run(str(tools), "-m", "build", "--wheel", "--outdir", str(again), str(tree), cwd=out, environment=environment)
    (wheel,) = out.glob("*.whl")
    differing = differences(wheel, again / wheel.name)
    if differing:
        raise SystemExit(f"the source distribution builds another wheel than the tree: {', '.join(differing[:5])} differ")
    named = f"gnothi @ {wheel.as_uri()}#sha256={_hash(wheel)}"
    _run(*pip, "--python", str(installed), "install", "--quiet", named, cwd=out, environment=environment)
    _run(*pip, "--python", str(installed), "check", cwd=out, environment=environment)
    said = _run(str(installed), "-m", "gnothi", "--version", cwd=out, environment=environment)
    if version not in said.split():
        raise SystemExit(f"the installed wheel calls itself {said!r}, expected {version}")
    bill = ("--output-reproducible", "--output-format", "JSON", "--output-file", str(out / f"gnothi-{version}.cdx.json"))
    subject = ("--pyproject", str(tree / "pyproject.toml"), str(installed))
    _run(str(tools), "-m", "cyclonedx_py", "environment", *bill, *subject, cwd=out, environment=environment)
    describe(out / f"gnothi-{version}.cdx.json", version, wheel)
    sums = "".join(f"{_hash(path)}  {path.name}\n" for path in sorted(out.iterdir()))
    (out / "SHA256SUMS").write_text(sums, "utf-8")


def describe(bill: Path, version: str, wheel: Path) -> None:
    """Version and hash of the wheel into its bill of materials, whose tool does not know a version that is computed."""
    content = json.loads(bill.read_text("utf-8"))
    content["metadata"]["component"] |= {"version": version, "hashes": [{"alg": "SHA-256", "content": _hash(wheel)}]}
    bill.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def differences(one: Path, other: Path) -> list[str]:
    """Names of the files in which two wheels differ; the wheel's own name where only the archives do."""
    if one.read_bytes() == other.read_bytes():
        return []
    with zipfile.ZipFile(one) as left, zipfile.ZipFile(other) as right:
        contents = [{name: archive.read(name) for name in archive.namelist()} for archive in (left, right)]
    return sorted(
        name for name in contents[0].keys() | contents[1].keys() if contents[0].get(name) != contents[1].get(name)
    ) or [one.name]


def listing(out: Path) -> str:
    """The artefacts with size in bytes and SHA-256."""
    return "".join(f"{path.stat().st_size:>12,}  {_hash(path)}  {path.name}\n" for path in sorted(out.iterdir()))


def _version(tree: Path) -> str:
    (version,) = PLACES["src/gnothi/version.py"].findall((tree / "src/gnothi/version.py").read_text("utf-8"))
    return str(version)


def _released(tree: Path, version: str) -> bool:
    """Whether the commit that is checked out is the tagged one: the notes of any other are those of what is unreleased."""
    return f"v{version}" in _run("git", "tag", "--points-at", "HEAD", cwd=tree).split()


def _made(folder: Path, option: str) -> Path:
    """The Python of a new environment."""
    _run(sys.executable, "-m", "venv", option, str(folder), cwd=folder.anchor)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(*command: str, cwd: Path | str, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints.

    Raises:
        SystemExit: it failed; with what it said.
    """
    finished = subprocess.run(
        command, cwd=cwd, env=os.environ | (environment or {}), capture_output=True, text=True, check=False
    )
    if finished.returncode:
        said = (finished.stderr.strip() or finished.stdout.strip())[-2000:]
        raise SystemExit(f"{' '.join(command[:4])} ... ended with exit code {finished.returncode}: {said}")
    return finished.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
