"""Numbers on the command line: what is none is refused wherever one is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import Run
from tests.messages import complained


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e400", "cheap"])
@pytest.mark.parametrize(
    "command",
    [
        "calibrate --replay FILE --search-cost",
        "calibrate FILE --out OUT --search-cost",
        "calibrate FILE --out OUT --target-error",
        "calibrate FILE --out OUT --epsilon",
        "ask Why? --max-cost",
    ],
    ids=" ".join,
)
def test_a_number_has_to_be_one(gnothi: Run, tmp_path: Path, command: str, value: str) -> None:
    (tmp_path / "FILE").write_text("{}", encoding="utf-8")
    arguments = [str(tmp_path / word) if word.isupper() else word for word in command.split()]
    complained(gnothi(*arguments, value))
    assert not (tmp_path / "OUT").exists()


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        (("lab", "train"), "KEY of the recipe, or grid.KEY"),
        (("train",), "KEY of KIND; with QUESTIONS also model.KEY; with reader also KEY of its method or index.KEY"),
        (("list",), "model.KEY, with models NAME"),
        (("ask",), "KEY of all methods, METHOD.KEY of one method, signal.KEY, model.KEY or index.KEY"),
    ],
)
def test_help_says_which_settings_a_command_takes(gnothi: Run, command: tuple[str, ...], takes: str) -> None:
    assert takes in " ".join(gnothi(*command, "--help")[1].split())


@pytest.mark.parametrize(
    "command", [("lab", "train"), ("train", "probe", "lab-train"), ("train", "utility-reference", "lab-train")]
)
def test_settings_that_help_does_not_name_are_refused(gnothi: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    for setting in ("seakr.samples=3", "index.depth=9"):
        complained(gnothi(*command, "--set", setting, "--out", str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()
