"""The examples of the guide run, in order, as one program."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from gnothi import methods
from gnothi.methods.steps.reader import ReaderSettings

ROOT = Path(__file__).parents[2]
READER = {item.name for item in fields(ReaderSettings)}  # shared; they stand beside those of skill_rag


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "methods.md").read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 4
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    assert "--set signal=consistency" in done.stdout
    assert "-6.26" in done.stdout


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_in_guide_and_papers(name: str) -> None:
    for page in ("methods.md", "papers.md"):
        assert f"`{name}`" in (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("seakr", {"reason", "query"}),
        ("keqa", set()),
        ("skill_rag", set()),
        ("filco", READER),
        ("crag", READER),
        ("skr", READER),
        ("iekr", {"retriever"}),
        ("refeed", READER),
        ("gkp", READER),
        ("self_consistency", set()),
        ("flare", set()),
        ("react", set()),
        ("searchain", set()),
        ("rowen", READER),
        ("slimplm", READER),
        ("self_rag", READER),
        ("dragin", set()),
        ("adaptive_rag", READER),
    ],
)
def test_every_setting_stands_beside_the_papers_number(name: str, left_out: set[str]) -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    ours = {item.name for item in fields(cast("Any", methods.find(name)))} - {"model", "retriever"} - left_out
    assert not {one for one in ours if not re.search(rf"`[^`]*\b{one}\b[^`]*`", text)}
