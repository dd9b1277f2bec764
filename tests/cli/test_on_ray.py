"""``--on ray`` of commands, with a Ray of ours: the same rows, calibration too, and what cannot be is said first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gnothi as interface
from gnothi.errors import InvalidSetting
from gnothi.runs.folder import read_config, read_rows
from tests.command_line import Json, Run
from tests.messages import complained, refused
from tests.runs.fake_ray import FakeRay


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


@pytest.mark.usefixtures("scripted")
def test_eval(gnothi_json: Json, gnothi: Run, ray: FakeRay, tmp_path: Path) -> None:
    arguments = ("eval", "lab", "--method", "direct,rag", "--limit", "4", "--out")
    gnothi_json(*arguments, str(tmp_path / "here"))
    code, _, err = gnothi(*arguments, str(tmp_path / "ray"), "--on", "ray:head:6379", "--workers", "2")
    assert code == 0, err
    here, there = ([row.comparable() for row in read_rows(tmp_path / name)] for name in ("here", "ray"))
    assert there == here
    assert (ray.addresses, len(ray.actors)) == (["head:6379"], 2)
    assert read_config(tmp_path / "ray")["execution.on"] == "ray:head:6379"
    gnothi_json(*arguments, str(tmp_path / "ray"))
    assert len(ray.actors) == 2


@pytest.mark.usefixtures("scripted")
def test_calibrate(gnothi: Run, ray: FakeRay, tmp_path: Path) -> None:
    made = tmp_path / "made.toml"
    code, _, err = gnothi("calibrate", "lab", "--set", "signal=perplexity", "--limit", "30", "--on", "ray", "--out", str(made))
    assert (code, made.is_file(), len(ray.actors)) == (0, True, 1), err


@pytest.mark.parametrize(
    "flags", ["--on dask", "--gpus 1", "--gpus nan", "--on ray --model openai:x --index lab", "--set on=ray"]
)
def test_mistakes(gnothi: Run, ray: FakeRay, tmp_path: Path, flags: str) -> None:
    complained(gnothi("eval", "lab", "--method", "rag", *flags.split(), "--out", str(tmp_path / "run")))
    assert (ray.addresses, (tmp_path / "run").exists()) == ([], False)


def test_without_the_package(gnothi: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = gnothi("eval", "lab", "--method", "direct", "--limit", "2", "--on", "ray", "--out", str(tmp_path / "run"))
    assert code != 0
    assert "pip install 'gnothi[ray]'" in err


@pytest.mark.usefixtures("scripted")
def test_objects_do_not_travel(tmp_path: Path) -> None:
    with interface.open("direct", model="lab") as rag, refused(InvalidSetting):
        interface.evaluate("lab", rag, tmp_path / "run", on="ray")
