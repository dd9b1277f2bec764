"""``--calibration FILE``: where a threshold may be used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gnothi import methods
from gnothi.calibration import layer
from gnothi.calibration.file import Calibration, read, write
from gnothi.calibration.mismatch import chosen_on
from gnothi.config import read_settings
from gnothi.errors import InvalidSetting, OtherModel, UnknownName
from gnothi.methods.planned import PlannedMethod
from gnothi.methods.steps.gating import scores_depend_on
from gnothi.models.identity import identify
from gnothi.models.settings import ModelSettings
from gnothi.session.plan import Request, form_of, resolve
from gnothi.signals.probe_folder import HEADER, LAB_FOLDER, WEIGHTS
from tests.cli.test_calibrate import teach
from tests.command_line import Json, Run
from tests.messages import refused

REPLY = {"max_tokens", "reason"}
SAMPLED = {"signal.samples", "signal.temperature", "signal.top_k", "signal.top_p"}
STATE = {"signal.layer", "signal.site"}


def calibration_of(path: Path, signal: str = "gram", settings: Mapping[str, Any] | None = None, **more: Any) -> Path:
    write(Calibration("seakr", signal, -3.0, identify("lab"), "some", 100, "em", "", settings=settings or {}, **more), path)
    return path


def used(path: Path, methods: str, *given: str, ignoring: bool = False) -> tuple[tuple[PlannedMethod, ...], tuple[str, ...]]:
    settings = read_settings(overrides=given)
    plan = resolve(Request(methods.split(","), settings=settings, calibration=read(path), ignore_mismatch=ignoring))
    return plan.methods, plan.notes


def worded(path: Path) -> Path:
    """The laboratory's probe, of which only the part that reads wordings is left: the scripted model has other states."""
    shutil.copytree(LAB_FOLDER, path)
    (path / WEIGHTS).unlink()
    header = path / HEADER
    header.write_text(json.dumps(json.loads(header.read_text("utf-8")) | {"states": []}), "utf-8")
    return path


@pytest.mark.parametrize(
    ("signal", "wanted"),
    [
        ("gram", SAMPLED | STATE | {"signal.alpha"}),
        ("consistency", SAMPLED),
        ("perplexity", set()),
        ("self_report", set()),
        ("probe", {"signal.probe"}),
        ("question", {"signal.probe"}),
    ],
)
def test_scores_depend_on_what_their_signal_reads(signal: str, wanted: set[str]) -> None:
    every = dict.fromkeys(REPLY | SAMPLED | STATE | {"signal.alpha", "signal.probe", "form", "k", "threshold"}, 1)
    assert scores_depend_on(every, signal, methods.spec("seakr").gate).keys() == REPLY | wanted | {"form"}


def test_another_layer_than_the_default_one_is_another_score(tmp_path: Path) -> None:
    made = calibration_of(tmp_path / "made.toml", settings={"signal.layer": None, "form": "simple"})
    assert read(made).settings == {"signal.layer": "none", "form": "simple"}
    assert used(made, "compose")[1]
    with refused(InvalidSetting):
        used(made, "compose", "signal.layer=0")


@pytest.mark.parametrize(
    ("settings", "method", "given"),
    [
        ({"form": "simple", "samples": 20}, "compose", ["gate=gram"]),
        ({"form": "multi_hop"}, "compose", ["gate=gram"]),
        ({"form": "simple"}, "seakr", ["form=multi_hop"]),
        ({}, "seakr", ["form=multi_hop"]),  # recorded outcomes are of whole replies
        ({"tries": 5, "temperature": 1.0}, "seakr", ["form=simple", "signal=consistency"]),
    ],
)
def test_scores_of_sentences_are_none_of_whole_replies(
    tmp_path: Path, settings: Mapping[str, Any], method: str, given: list[str]
) -> None:
    signal = "consistency" if "signal=consistency" in given else "gram"
    made = calibration_of(tmp_path / "made.toml", signal, settings)
    with refused(InvalidSetting):
        used(made, method, *given)


@pytest.mark.parametrize(
    ("settings", "method", "given"),
    [
        ({}, "compose", []),
        ({}, "seakr", []),
        ({"form": "simple"}, "seakr", []),
        ({"form": "multi_hop"}, "seakr", ["signal=gram"]),
    ],
)
def test_the_same_form_will_do(tmp_path: Path, settings: Mapping[str, Any], method: str, given: list[str]) -> None:
    assert used(calibration_of(tmp_path / "made.toml", "gram", settings), method, *given)[1]


def test_a_rule_for_stopping_early_comes_with_its_threshold(tmp_path: Path) -> None:
    rule = "4: -4.0 -2.0 0.5"
    made = calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"}, stopping=rule)
    ((method,), (told,)) = used(made, "seakr")
    assert method.values["signal.stopping"] == rule
    assert method.gate is not None
    assert "signal.stopping" not in method.gate.settings  # scores of all samples do not depend on it
    assert "drawing samples until it is decided" in told
    with refused(UnknownName):  # nobody types it
        used(made, "seakr", f"signal.stopping={rule}")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (None, set()),
        ("4: -4.0 -2.0 0.5", {"until it is decided"}),
        (" | 4: 0.5 | 8", {"where passages are compared"}),
        ("4: -4.0 -2.0 0.5 | 4: 0.5", {"until it is decided", "where passages are compared"}),
    ],
)
def test_what_a_rule_saves_is_told(tmp_path: Path, rule: str | None, told: set[str]) -> None:
    made = calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"}, stopping=rule)
    (_, (said,)) = used(made, "seakr")
    assert {one for one in ("until it is decided", "where passages are compared") if one in said} == told


@pytest.mark.parametrize("rule", [None, "4: -4.0 -2.0 0.5"])
def test_what_was_chosen_is_above_what_the_file_of_a_run_says(tmp_path: Path, rule: str | None) -> None:
    made = read(calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop", "signal.samples": 20}, stopping=rule))
    config = tmp_path / "config.toml"

    def repeated(text: str, calibration: Calibration | None) -> tuple[float, str | None]:
        config.write_text(f'[seakr]\nthreshold = -5.0\nsignal.stopping = "2: -4.0 -2.0 0.5"\n{text}', "utf-8")
        settings = read_settings(config, repeated=lambda values: values)
        (method,) = resolve(Request(["seakr"], settings=settings, calibration=calibration)).methods
        return method.values["threshold"], method.values["signal.stopping"]

    assert repeated("", None) == (-5.0, "2: -4.0 -2.0 0.5")
    assert repeated("signal.samples = 20\nalways_retrieve = true\n", made) == (-3.0, rule)
    for text in ("signal.samples = 10\n", 'form = "simple"\n', 'signal.name = "consistency"\n'):
        with refused(InvalidSetting):
            repeated(text, made)


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("threshold = -5.0", True),
        ("[seakr]\nthreshold = -5", True),
        ("[seakr]\nthreshold = -3", False),  # the same
        ("always_retrieve = true", True),
        ("always_retrieve = false", False),
    ],
)
def test_a_file_that_somebody_wrote_is_not_passed_over(tmp_path: Path, text: str, refuses: bool) -> None:
    made = calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"})
    config = tmp_path / "settings.toml"
    config.write_text(text, "utf-8")
    with refused(InvalidSetting) if refuses else nullcontext():
        plan = resolve(Request(["seakr"], settings=read_settings(config), calibration=read(made)))
        assert plan.methods[0].values["threshold"] == -3.0
    with refused(InvalidSetting) if refuses else nullcontext():
        used(made, "seakr", text.splitlines()[-1].replace(" ", ""))


def test_other_settings_end_a_rule_where_a_mismatch_is_ignored(tmp_path: Path) -> None:
    rule = "4: -4.0 -2.0 0.5"
    made = read(calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop", "signal.samples": 20}, stopping=rule))

    def taken(*overrides: str) -> object:
        settings = read_settings(overrides=overrides)
        (method,) = resolve(Request(["seakr"], settings=settings, calibration=made, ignore_mismatch=True)).methods
        return method.values["signal.stopping"]

    assert taken() == taken("signal.samples=20") == rule
    assert taken("signal.samples=10") is None


def test_the_panels_choice_is_a_gate_with_no_further_option(
    scripted: Any, gnothi: Run, gnothi_json: Json, tmp_path: Path
) -> None:
    """Also where the panel was given a probe, and chose another signal."""
    known = teach(scripted)
    run, out = str(tmp_path / "run"), str(tmp_path / "made.toml")
    probe = worded(tmp_path / "probe")
    panel = (
        "--method",
        "panel,rag",
        "--set",
        f"panel.signal.probe={probe}",
        "--set",
        "panel.signal.samples=4",
        "--limit",
        "40",
    )
    assert gnothi("eval", "lab:one_hop", *panel, "--out", run)[0] == 0
    for measured, told in (
        ("gram", "gram (signal.samples = 4)"),
        ("perplexity", "perplexity"),
        ("question", f"question (signal.probe = {probe})"),
        ("gram.residual", "gram (signal.samples = 4, signal.site = residual)"),
    ):
        gnothi_json("calibrate", run, "--signal", measured, "--out", out)
        for method in ((), ("--method", "compose")):
            code, _, err = gnothi("ask", known[0], *method, "--calibration", out)
            assert (code, f"for {told}, calibrated on 40 questions of lab:one_hop" in err) == (0, True), err


@pytest.mark.parametrize(
    ("failures", "answers_of", "told"),
    [
        (0, "", "calibrated on 100 questions of some"),
        (0, "compose", "calibrated on 100 questions of some"),
        (0, "panel", "calibrated on 100 questions of some, by the answers of panel"),
        (5, "cot", "calibrated on 100 questions of some (5 more failed and had no part in it), by the answers of cot"),
    ],
)
def test_what_a_threshold_rests_on_is_said_where_it_is_used(tmp_path: Path, failures: int, answers_of: str, told: str) -> None:
    made = calibration_of(tmp_path / "made.toml", failures=failures, answers_of=answers_of)
    assert used(made, "compose")[1] == (f"compose: threshold -3 for gram, {told}",)


@pytest.mark.parametrize(
    ("made_with", "methods", "given", "users"),
    [
        ("panel", "cot,rag,compose", [], "compose"),
        ("panel", "seakr,compose,direct", [], "seakr compose"),  # none was made with it: every gate that could have the signal
        ("panel", "skill_rag,compose", ["compose.gate=gram"], "compose"),  # the user said which
        ("panel", "seakr,compose", ["compose.gate=always"], "seakr"),
        ("seakr", "seakr,compose,rag", [], "seakr"),  # it is that method's
        ("seakr", "seakr,compose", ["gate=gram"], "seakr compose"),
        ("compose", "compose,skill_rag", [], "compose"),
        ("compose", "skill_rag,rag", [], "skill_rag"),
        ("panel", "seakr", ["signal=perplexity"], ""),
        ("panel", "compose", ["gate=never"], ""),
        ("compose", "keqa,compose", ["gate=gram"], "compose"),
        ("panel", "keqa,rag", [], ""),
    ],
)
def test_which_methods_a_calibration_is_for(tmp_path: Path, made_with: str, methods: str, given: list[str], users: str) -> None:
    made = replace(read(calibration_of(tmp_path / "made.toml", settings={"form": "simple"})), method=made_with)
    write(made, tmp_path / "made.toml")
    if not users:
        with refused(InvalidSetting):
            used(tmp_path / "made.toml", methods, *given)
        return
    planned, told = used(tmp_path / "made.toml", methods, *given)
    assert [line.partition(":")[0] for line in told] == users.split()
    for one in planned:
        gate = one.gate
        taken = gate is not None and (gate.signal, gate.threshold) == ("gram", -3.0)
        assert taken is (one.name in users.split())


def test_what_a_user_gives_counts_where_a_mismatch_is_ignored(tmp_path: Path) -> None:
    made = calibration_of(tmp_path / "made.toml", settings={"signal.samples": 4, "signal.layer": 1, "form": "simple"})
    with refused(InvalidSetting):
        used(made, "compose", "samples=8")
    ((method,), _) = used(made, "compose", "compose.samples=8", ignoring=True)
    assert (method.values["signal.samples"], method.values["signal.layer"], method.values["gate"]) == (8, 1, "gram")
    with refused(InvalidSetting):
        used(made, "compose", "gate_threshold=2", ignoring=True)


@pytest.mark.parametrize(
    ("calibrated", "asked", "fingerprint", "warned"),
    [
        ("lab", "lab", "", True),
        ("lab:one_hop", "lab", "", True),
        ("lab-train", "lab", "0123", False),
        ("some.jsonl", "other.jsonl", "4567", True),
        ("some.jsonl", "other.jsonl", "", False),
    ],
)
def test_questions_that_a_threshold_was_chosen_on(
    tmp_path: Path, calibrated: str, asked: str, fingerprint: str, warned: bool
) -> None:
    made = replace(read(calibration_of(tmp_path / "made.toml")), dataset=calibrated, data_fingerprint="4567")
    write(made, tmp_path / "made.toml")
    assert ("was chosen on questions of" in chosen_on(read(tmp_path / "made.toml"), asked, fingerprint)) is warned


@pytest.mark.parametrize(
    ("precision", "given", "ignore_mismatch", "opened"),
    [
        ("", "auto", False, "auto"),
        ("bfloat16", "auto", False, "bfloat16"),
        ("bfloat16", "bfloat16", False, "bfloat16"),
        ("bfloat16", "float32", True, "float32"),
        ("bfloat16", "float32", False, None),
    ],
)
def test_the_model_computes_as_it_was_calibrated(
    tmp_path: Path, precision: str, given: str, ignore_mismatch: bool, opened: str | None
) -> None:
    file = calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"}, precision=precision)
    assert read(file).precision == precision
    overrides = () if given == "auto" else (f"model.dtype={given}",)
    request = Request(settings=read_settings(overrides=overrides), calibration=read(file), ignore_mismatch=ignore_mismatch)
    if opened is None:
        with refused(OtherModel):
            resolve(request)
    else:
        settings = resolve(request).models["lab"]
        assert isinstance(settings, ModelSettings)
        assert settings.dtype == opened


@pytest.mark.parametrize(
    ("key", "was", "given", "ignore_mismatch", "other"),
    [
        ("thinking", "", "on", False, False),
        ("thinking", "off", "off", False, False),
        ("thinking", "off", "on", False, True),
        ("thinking", "high", "off", False, True),
        ("thinking", "off", "on", True, False),
        ("renderer", "plain", "plain", False, False),
        ("renderer", "auto", "plain", False, True),
        ("renderer", "plain", "chat", False, True),
        ("demonstrations", "auto", "skill-rag", False, True),
        ("demonstrations", "skill-rag", "skill-rag", False, False),
        ("demonstrations", "auto", "skill-rag", True, False),
        ("passages", "titled", "text", False, True),
        ("passages", "text", "text", False, False),
    ],
)
def test_prompts_have_the_form_that_was_calibrated(
    tmp_path: Path, key: str, was: str, given: str, ignore_mismatch: bool, other: bool
) -> None:
    file = calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"}, form={key: was} if was else {})
    assert read(file).form == ({key: was} if was else {})
    request = Request(
        settings=read_settings(overrides=(f"model.{key}={given}",)), calibration=read(file), ignore_mismatch=ignore_mismatch
    )
    if other:
        with refused(OtherModel):
            resolve(request)
    else:
        resolve(request)


def test_prompts_are_written_as_they_were_calibrated_where_nobody_says_otherwise(tmp_path: Path) -> None:
    form = {"thinking": "off", "demonstrations": "skill-rag", "passages": "text"}
    file = calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"}, form=form)
    plan = resolve(Request(calibration=read(file)))
    assert form_of("lab", plan.models) == {"renderer": "auto"} | form
    assert plan.settings.section("model").keys() == {"demonstrations", "passages"}  # a run records them
    assert form_of("lab", resolve(Request(calibration=read(file), ignore_mismatch=True)).models)["passages"] == "titled"


def test_the_model_is_the_calibrations_where_nobody_names_one(tmp_path: Path) -> None:
    made = Calibration("compose", "consistency", 0.5, identify("openai:some"), "some", 100, "em", "")
    plan = resolve(Request(index="lab", calibration=made))
    assert (plan.sources.model, plan.unnamed, plan.notes[0]) == (
        "openai:some",
        False,
        "model openai:some: the calibration is of it",
    )
    with refused(OtherModel):
        resolve(Request(model="lab", calibration=made))
    proxied = replace(made, method="slimplm", signal="least_likely")  # its gate listens to another model than the main one
    assert layer.model_of(proxied) is None
    lab = resolve(Request(calibration=read(calibration_of(tmp_path / "made.toml", settings={"form": "multi_hop"}))))
    assert (lab.sources.model, lab.unnamed) == ("lab", True)
