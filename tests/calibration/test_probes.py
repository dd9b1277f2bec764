"""Whether a probe learnt from the questions that are asked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gnothi.calibration.probes import learnt_from
from gnothi.config import read_settings
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import plan_methods
from gnothi.session.plan import Request, resolve
from gnothi.signals.probe_folder import FORMAT, HEADER, LAB_FOLDER
from tests.command_line import Run
from tests.messages import refused


def probe_of(folder: Path, name: str, fingerprint: str) -> str:
    folder.mkdir()
    data = {"name": name, "fingerprint": fingerprint}
    (folder / HEADER).write_text(json.dumps({"format": FORMAT, "data": data}))
    return str(folder)


@pytest.mark.parametrize(
    ("learnt", "asked", "same"),
    [
        ("lab-train", "lab-train", True),
        ("lab-train", "lab-train:one_hop", True),
        ("lab-train:choice", "lab-train", True),
        ("lab-train", "lab", False),
        ("questions.jsonl", "./questions.jsonl", True),
        ("questions.jsonl", "other.jsonl", False),
    ],
)
def test_the_same_data_set_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learnt: str, asked: str, same: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("questions.jsonl", "other.jsonl"):
        Path(name).write_text("{}\n")
    spec = probe_of(tmp_path / "probe", learnt, "0123")
    methods = plan_methods(["compose"], read_settings(overrides=["gate=probe", f"signal.probe={spec}"]))
    assert learnt_from(methods, asked) == [spec] * same
    assert learnt_from(methods, asked, "4567") == [spec] * same
    assert learnt_from(methods, asked, "0123") == [spec]
    assert learnt_from(plan_methods(["compose"], read_settings()), asked) == []


@pytest.mark.usefixtures("scripted")
def test_a_run_over_what_a_probe_learnt_from_says_so(gnothi: Run, tmp_path: Path) -> None:
    given = ("--method", "compose", "--set", "gate=question", "--set", "signal.probe=lab", "--limit", "1")
    code, _, err = gnothi("eval", "lab-train:one_hop", *given, "--out", str(tmp_path / "seen"))
    assert code == 0
    assert "warning: the probe lab learnt from questions of lab-train:one_hop" in err
    assert "learnt from" not in gnothi("eval", "lab:one_hop", *given, "--out", str(tmp_path / "new"))[2]


@pytest.mark.usefixtures("scripted")
def test_a_probe_that_does_not_say_of_what_model_it_is(gnothi: Run, tmp_path: Path) -> None:
    spec = probe_of(tmp_path / "probe", "lab-train", "0123")
    given = ("--method", "compose", "--set", "gate=question", "--set", f"signal.probe={spec}", "--model", "lab")
    code, _, err = gnothi("ask", "Who?", *given)
    assert code == 2
    assert "probe.json lacks 'model'. Expected a folder made by `gnothi train probe`" in err


def test_a_method_answers_as_its_probe_was_trained(tmp_path: Path) -> None:
    shutil.copytree(LAB_FOLDER, tmp_path / "probe")
    header = tmp_path / "probe" / HEADER
    header.write_text(json.dumps(json.loads(header.read_text("utf-8")) | {"settings": {"reason": False}}), "utf-8")
    given = ["gate=probe", f"signal.probe={tmp_path / 'probe'}"]
    plan = resolve(Request(["compose", "rag"], settings=read_settings(overrides=[f"compose.{one}" for one in given])))
    assert [one.values["reason"] for one in plan.methods] == [False, "auto"]
    assert plan.notes == (f"compose: reason = false, as the probe {tmp_path / 'probe'} was made",)
    with refused(InvalidSetting):
        resolve(Request(["compose"], settings=read_settings(overrides=[*given, "reason=true"])))
