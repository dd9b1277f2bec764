"""What a calibration on a run or on a file of recorded outcomes is of."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnothi.calibration.replay import Replay, Scores
from gnothi.calibration.source import from_replay, replay_of
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.models.identity import content
from tests.calibration.test_probes import probe_of
from tests.messages import refused


def folder(path: Path, size: int) -> str:
    path.mkdir()
    (path / "config.json").write_text(f'{{"hidden_size": {size}}}', "utf-8")
    return str(path)


def replay_by(*methods: tuple[str, str], **settings: object) -> Replay:
    """Of methods with a signal each, on four questions."""
    ends = np.array([1.0, 0.0, 1.0, 0.0])
    seen = np.zeros(4, dtype=bool)
    names = [signal for _, signal in methods]
    signals = tuple(
        Scores(
            signal if names.count(signal) == 1 else f"{method}: {signal}",
            ends, seen, seen, "", method=method, signal=signal.partition(".")[0],
        )
        for method, signal in methods
    )  # fmt: skip
    config = {key.replace("__", "."): value for key, value in settings.items()}
    return Replay("runs/some", "lab", "em", ("cot", "rag"), ends, ends, signals, settings=config)


def test_a_run_is_of_its_own_model(tmp_path: Path) -> None:
    ours, other = folder(tmp_path / "ours", 8), folder(tmp_path / "other", 16)
    made = replay_by(("seakr", "gram"), model__name=ours, fingerprints__model__name=content(ours))
    assert from_replay(made, None, None, "").model == ours
    assert from_replay(made, None, None, ours).model == ours
    for wrong in (other, "some/model", "openai:gpt"):
        with refused(InvalidSetting):
            from_replay(made, None, None, wrong)
    moved = str(tmp_path / "moved")
    shutil.move(ours, moved)
    assert from_replay(made, None, None, moved).model == moved
    assert not from_replay(made, None, None, moved).warnings
    folder(tmp_path / "ours", 32)
    (warning,) = from_replay(made, None, None, "").warnings
    assert f"the model {ours} is not what it was for runs/some" in warning


def test_a_file_of_questions_records_nothing(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "Where?", "answers": ["here"]}\n', encoding="utf-8")
    assert replay_of(str(path), None, None, None) is None


def test_what_a_record_does_not_say_is_told_to_it() -> None:
    made = replace(replay_by(("seakr", "gram")), settings={})
    assert from_replay(made, None, None, "some/model").model == "some/model"
    assert from_replay(made, None, None, "").model == ""


PANEL_AND_GATES = (
    ("panel", "gram"), ("panel", "gram.residual"), ("panel", "energy"), ("seakr", "gram"), ("compose", "energy"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "signal", "found"),
    [
        ("panel", "gram", ("panel", "panel: gram")),
        ("panel", "panel: gram", ("panel", "panel: gram")),
        (None, "seakr: gram", ("seakr", "seakr: gram")),
        ("seakr", None, ("seakr", "seakr: gram")),
        (None, "gram.residual", ("panel", "gram.residual")),
        ("panel", "energy", ("panel", "panel: energy")),
    ],
)
def test_a_signal_by_its_method_or_by_its_label(method: str | None, signal: str | None, found: tuple[str, str]) -> None:
    made = replay_by(*PANEL_AND_GATES)
    source = from_replay(made, method, signal, "")
    expected = next(one for one in made.signals if (one.method, one.name) == found)
    assert (source.method, source.signal) == (expected.method, expected.signal)
    assert source.sample.scores is expected.values


@pytest.mark.parametrize(
    ("method", "signal"),
    [(None, None), (None, "gram"), ("panel", None), ("seakr", "energy"), (None, "prompt"), ("iekr", "gram")],
)
def test_an_ambiguous_signal_says_what_would_tell(method: str | None, signal: str | None) -> None:
    with refused((InvalidSetting, UnknownName)):
        from_replay(replay_by(*PANEL_AND_GATES), method, signal, "")


@pytest.mark.parametrize(
    ("signal", "dataset", "fingerprint", "warned"),
    [
        ("question", "lab-train:one_hop", "", True),
        ("probe", "other.jsonl", "0123", True),
        ("probe", "other.jsonl", "4567", False),
        ("gram", "lab-train", "", False),
    ],
)
def test_a_run_over_what_its_probe_learnt_from(
    tmp_path: Path, signal: str, dataset: str, fingerprint: str, warned: bool
) -> None:
    spec = probe_of(tmp_path / "probe", "lab-train", "0123")
    made = replay_by(("panel", signal), method__panel__signal__probe=spec, dataset__fingerprint=fingerprint)
    warnings = from_replay(replace(made, dataset=dataset), None, None, "").warnings
    assert [f"the probe {spec} learnt from" in one for one in warnings] == [True] * warned
    shutil.rmtree(spec)
    assert not from_replay(replace(made, dataset=dataset), None, None, "").warnings
