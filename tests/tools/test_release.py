from __future__ import annotations

import datetime
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import refused
from tools import release

DAY = datetime.date(2026, 12, 1)
CHANGES = """# Changelog

## Unreleased

### Added

- A thing.

## 0.1.0

The first.
"""


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository that may be released."""
    root = tmp_path / "project"
    (root / "src/gnothi").mkdir(parents=True)
    (root / "src/gnothi/version.py").write_text('"""The version."""\n\n__version__ = "0.1.0"\n')
    (root / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.1.0\n")
    (root / "CHANGELOG.md").write_text(CHANGES)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "user.name", "Ona Brisk")
    git(root, "config", "user.email", "ona@example.org")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "All")
    passed(root)
    return root


def passed(root: Path) -> None:
    (root / ".git/ci-passed").write_text(git(root, "rev-parse", "HEAD") + "\n")


def test_what_may_be_released(root: Path) -> None:
    release.check(root, "0.2.0")
    release.check(root, "0.1.1")


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9", "0.2", "v0.2.0", "0.2.0rc1"])
def test_versions_that_are_refused(root: Path, version: str) -> None:
    with refused(SystemExit):
        release.check(root, version)


def test_a_tag_counts_as_a_version(root: Path) -> None:
    git(root, "tag", "v0.10.0")
    with refused(SystemExit):
        release.check(root, "0.9.0")
    release.check(root, "0.11.0")


def test_all_reasons_are_said_at_once(root: Path) -> None:
    (root / "CHANGELOG.md").write_text(CHANGES.replace("- A thing.\n", ""))
    (root / ".git/ci-passed").unlink()
    git(root, "checkout", "--quiet", "--detach")
    with refused(SystemExit, varies="(?<=commit )[0-9a-f]{12}"):
        release.check(root, "0.1.0")


def test_a_commit_after_the_one_that_passed_is_refused(root: Path) -> None:
    git(root, "commit", "--quiet", "--allow-empty", "--message", "More")
    with refused(SystemExit, varies="(?<=commit )[0-9a-f]{12}"):
        release.check(root, "0.2.0")


def test_version_changelog_commit_and_tag(root: Path, tmp_path: Path) -> None:
    before, copy = git(root, "rev-parse", "HEAD"), tmp_path / "copy"
    release.clone(root, copy)
    release.stamp(copy, "0.2.0", DAY)
    assert git(root, "rev-parse", "HEAD") == before
    assert not git(root, "tag", "--list")

    release.adopt(root, copy, "0.2.0")
    assert '__version__ = "0.2.0"\n' in (root / "src/gnothi/version.py").read_text()
    assert (root / "CITATION.cff").read_text() == "cff-version: 1.2.0\nversion: 0.2.0\n"
    assert git(root, "rev-parse", "HEAD") == git(root, "rev-parse", "v0.2.0^{commit}")
    assert git(root, "log", "-1", "--format=%an %s") == "Ona Brisk Gnothi 0.2.0"
    assert git(root, "branch", "--show-current") == "main"
    assert not git(root, "status", "--porcelain")
    changes = (root / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 0.2.0 - 2026-12-01\n\n### Added" in changes
    assert release.notes(changes, "0.2.0") == "### Added\n\n- A thing.\n"
    assert release.notes(changes, "0.1.0") == "The first.\n"
    passed(root)
    with refused(SystemExit):
        release.check(root, "0.3.0")  # nothing is unreleased


def test_a_file_without_a_version_is_refused(root: Path) -> None:
    (root / "CITATION.cff").write_text("cff-version: 1.2.0\n")
    with refused(SystemExit):
        release.stamp(root, "0.2.0", DAY)


def test_notes_of_an_unknown_version_are_refused() -> None:
    with refused(SystemExit):
        release.notes(CHANGES, "0.3.0")


@given(st.text(st.characters(codec="utf-8", exclude_characters="#\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")))
def test_notes_are_what_stood_under_unreleased(text: str) -> None:
    changes = f"# Changelog\n\n## Unreleased\n\n{text}\n\n## 0.1.0\n\nThe first.\n"
    assert release.notes(release.dated(changes, "0.2.0", DAY), "0.2.0") == text.strip() + "\n"


def test_wheels_are_compared_by_bytes_and_differ_by_files(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.whl", "same.whl", "other.whl", "later.whl")]
    for path, text, year in zip(paths, ("a", "a", "b", "a"), (2020, 2020, 2020, 2021), strict=True):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("x.py", (year, 1, 1, 0, 0, 0)), text)
    one, same, other, later = paths
    assert release.differences(one, same) == []
    assert release.differences(one, other) == ["x.py"]
    assert release.differences(one, later) == ["one.whl"]
