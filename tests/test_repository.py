"""The repository's own files: they can be read by what reads them, and say the same of the version."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import gnothi
from tools import ready, release

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def lines(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", ["CITATION.cff", ".pre-commit-config.yaml"])
def test_it_is_yaml(name: str) -> None:
    assert isinstance(loaded(ROOT / name), dict)


def test_the_workflow_runs_what_can_be_run_anywhere() -> None:
    steps = loaded(GITHUB / "workflows" / "ci.yml")["jobs"]["checks"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_may_only_read(path: Path) -> None:
    assert loaded(path)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / ".ci").iterdir()))
def test_scripts_of_ci_are_shell(script: str) -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / script], check=True)
    assert os.access(ROOT / ".ci" / script, os.X_OK) == (not script.endswith(".sh"))


def test_what_workflows_make_is_there() -> None:
    jobs = [job for path in sorted((GITHUB / "workflows").glob("*.yml")) for job in loaded(path)["jobs"].values()]
    runs = [step["run"].split() for job in jobs for step in job.get("steps", ()) if "run" in step]
    targets = {target for words in runs if words[0] == "make" for target in words[1:]}
    assert {"install", "test-long", "build"} <= targets
    assert all(re.search(rf"^{target}:", lines("Makefile"), re.MULTILINE) for target in targets)


def test_the_container_and_its_neighbour_are_described() -> None:
    """Neither is run by a test: what they name is there, and nothing in them is a key."""
    folder = ROOT / "examples" / "serving"
    services = loaded(folder / "compose.yaml")["services"]
    build = services["gnothi"]["build"]
    assert (folder / build["context"] / build["dockerfile"]).resolve() == folder / "Containerfile"
    container = (folder / "Containerfile").read_text("utf-8")
    assert set(build["args"]) == set(re.findall(r"^ARG (\w+)", container, re.MULTILINE))
    assert re.search(r"^USER [1-9]\d*$", container, re.MULTILINE)
    assert services["open-webui"]["environment"]["OPENAI_API_KEY"].startswith("${")
    copied = " ".join(re.findall(r"^COPY (.*) \S+$", container, re.MULTILINE)).split()
    assert all((ROOT / name).exists() for name in copied)


def test_issues_are_asked_for_in_forms() -> None:
    forms = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
    assert len(forms) >= 3
    for path in forms:
        form = loaded(path)
        assert {"name", "description", "body"} <= form.keys(), path.name
        identities = [part["id"] for part in form["body"]]
        assert len(identities) == len(set(identities)), path.name
        assert all(part["attributes"]["label"] for part in form["body"] if part["type"] != "checkboxes"), path.name
    assert lines(".github/pull_request_template.md").startswith("## ")


def test_hooks_run_the_tools_that_are_installed() -> None:
    """Nothing is fetched, so that hooks and ``make check`` cannot disagree on a version."""
    (repository,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    assert {"ruff-format", "ruff-check", "mypy", "imports"} == {hook["id"] for hook in repository["hooks"]}


def test_the_citation_names_what_it_has_to() -> None:
    citation = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == PROJECT["project"]["license"] == "Apache-2.0"


def test_one_version_everywhere() -> None:
    headings = re.findall(r"^## \[?([^\]\s]+)\]?", lines("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert gnothi.__version__ in headings
    assert str(loaded(ROOT / "CITATION.cff")["version"]) == gnothi.__version__
    for path, place in release.PLACES.items():
        assert place.findall(lines(path)) == [gnothi.__version__], path


def test_changes_stand_under_the_usual_headings() -> None:
    usual = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", lines("CHANGELOG.md"), re.MULTILINE)) <= usual


def test_the_metadata_helps_to_find_the_project() -> None:
    project = PROJECT["project"]
    assert project["urls"]
    assert project["keywords"]
    assert "Typing :: Typed" in project["classifiers"]
    assert not any(line.startswith("License ::") for line in project["classifiers"])  # the expression says it (PEP 639)


def test_what_the_house_rules_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", lines("Makefile"), re.MULTILINE))
    for page in ("CONTRIBUTING.md", ".github/pull_request_template.md", "docs/project/versions.md"):
        assert set(re.findall(r"`make ([a-z-]+)", lines(page))) <= targets, page


def test_files_that_pages_name_are_there() -> None:
    assert all((ROOT / path).exists() for path in ready.ALWAYS)
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for path in re.findall(r"`((?:src/gnothi|tests|tools|benchmarks)/[\w/.-]+)", page.read_text("utf-8")):
            assert "NAME" in path or (ROOT / path).exists(), f"{page.name} names {path}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/project/versions.md"])
def test_links_of_the_project_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", lines(page)):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).resolve().exists(), f"{page} links to {target}"


def test_development_versions_are_pinned() -> None:
    """What ``dev`` names itself has a line in constraints.txt, so that two machines run the same checks."""
    pinned = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines("constraints.txt").splitlines()}
    named = [re.split(r"[\[<>=]", need)[0].lower() for need in PROJECT["project"]["optional-dependencies"]["dev"]]
    assert {*named} - {"gnothi", "setuptools"} <= pinned  # what builds packages comes with the environment


WORDED = {
    "tests/test_locks.py": "who holds a lock is told where the system tells it, in a pattern with the other process's number",
    "tests/test_conftest.py": "the number of the system's error, no words",
}
"""Files whose tests match what an error says, each with the reason."""
_MATCHED = re.compile(r"""\b(?:raises|warns)\((?:[^()]|\([^()]*\))*\bmatch=|\w [^"'\n]*["'] in str\(\w+\.value\)""")


def test_wording_is_matched_in_the_snapshot_alone() -> None:
    """Elsewhere tests name the type of an error, as in ``refused(TYPE)``: so a message is reworded in one place."""
    tests = (path for path in (ROOT / "tests").rglob("*.py") if path.name != Path(__file__).name)
    found = {path.relative_to(ROOT).as_posix() for path in tests if _MATCHED.search(path.read_text("utf-8"))}
    assert found == WORDED.keys(), "write refused(TYPE) of tests/messages.py"


def test_every_message_of_the_snapshot_is_of_a_test_that_is_there() -> None:
    named = [line for line in lines("tests/samples/messages.txt").splitlines() if not line.startswith("  ")]
    wanted = {(test.partition("::")[0], test.partition("[")[0].rpartition("::")[2]) for test in named}
    texts = {path: lines(path) for path, _ in wanted if (ROOT / path).exists()}
    gone = [f"{path}::{name}" for path, name in sorted(wanted) if f"def {name}(" not in texts.get(path, "")]
    assert not gone, f"remove these of tests/samples/messages.txt: {gone}"
