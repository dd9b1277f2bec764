"""The lines of a training: what goes on after a kill, when it is over, which step was best."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gnothi.training.curve import CURVES, Curve, Panel, TrackedFigures, draw_curves
from gnothi.training.finetuning import CHECKPOINTS, METRICS
from gnothi.training.reader import stages as reader
from gnothi.training.reranker import stages as reranker
from tests.training.recording import RecordingWatch

TRACKED = TrackedFigures("score", ("loss",), ("score", "share"))


class Trainer:
    """Says what it was asked for."""

    def __init__(self, curve: Curve | None = None) -> None:
        self.calls: list[Any] = []
        self.curve = curve

    def evaluate(self) -> None:
        self.calls.append("evaluate")
        assert self.curve is not None
        for step, score in ((0, 9.0), (2, 1.0), (4, 3.0), (6, 3.0)):
            self.curve.add(step, {"score": score})

    def train(self, resume_from_checkpoint: str | None) -> None:
        self.calls.append(resume_from_checkpoint and Path(resume_from_checkpoint).name)


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / METRICS).read_text().splitlines()]


def test_from_the_start_and_from_a_checkpoint(tmp_path: Path) -> None:
    watch = RecordingWatch()
    curve = Curve(tmp_path, TRACKED, 9, watch)
    trainer = Trainer(curve)
    curve.run(trainer, 8)
    assert trainer.calls == ["evaluate", None]
    assert watch.lines == curve.lines == lines(tmp_path)
    assert curve.best_step == 4  # not the start, of equals the first

    saved = tmp_path / CHECKPOINTS / "checkpoint-4"
    saved.mkdir(parents=True)
    (saved / "trainer_state.json").write_text("{}")
    again, trainer = Curve(tmp_path, TRACKED, 9), Trainer()
    again.run(trainer, 8)
    assert trainer.calls == ["checkpoint-4"]
    assert [line["step"] for line in lines(tmp_path)] == [0, 2, 4]
    done = Trainer()
    Curve(tmp_path, TRACKED, 9).run(done, 4)
    assert done.calls == []


def test_what_the_trainer_reports_becomes_lines(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    validated: list[int] = []
    curve = Curve(tmp_path, TRACKED, 2)
    listener = curve.listener(lambda: validated.append(len(curve.lines)))
    control = SimpleNamespace(should_training_stop=False)
    for step, score in enumerate((1.0, 3.0, 2.0, 2.0)):
        state = SimpleNamespace(global_step=step)
        listener.on_log(None, state, control, logs={"loss": 0.5, "epoch": 1.0})
        listener.on_log(
            None, state, control, logs={"eval_score": score, "eval_share": 1, "eval_loss": 9.0, "eval_runtime": 9.0}
        )
        listener.on_log(None, state, control, logs={"train_loss": 9.0, "train_runtime": 9.0})
        assert not control.should_training_stop
        listener.on_evaluate(None, state, control, metrics={})
    assert curve.lines[:2] == [{"step": 0, "loss": 0.5}, {"step": 0, "score": 1.0, "share": 1}]
    assert validated == [2, 4, 6, 8]
    assert control.should_training_stop


def test_curves_are_drawn_at_the_first_validation_and_then_every_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    drawn, now = [], [5.0]
    monkeypatch.setattr("gnothi.training.curve.time.monotonic", lambda: now[0])
    curve = Curve(tmp_path, TRACKED, 9)
    monkeypatch.setattr(curve, "draw", lambda: drawn.append(now[0]))
    listener = curve.listener()

    def validate_now_and_then() -> None:
        for now[0] in (5.0, 9.0, 14.9, 15.0, 20.0):
            listener.on_evaluate(None, None, SimpleNamespace(), metrics={})

    validate_now_and_then()
    assert drawn == []  # of several processes, the others
    curve.run(SimpleNamespace(evaluate=lambda: None, train=lambda **_: validate_now_and_then()), 8)
    assert drawn == [5.0, 15.0]


@pytest.mark.parametrize(
    "panels", [reader.TRACKED.panels, reranker.TRACKED.panels, (Panel("one", trained=("loss", "training")),)]
)
def test_the_picture_is_written(tmp_path: Path, panels: tuple[Panel, ...]) -> None:
    draw_curves(tmp_path, [], panels)
    validated = {"validation_loss": 1.0, "validation_accuracy": 0.5, "average_precision": 0.5, "first": 1.0}
    draw_curves(tmp_path, [{"step": 1, "loss": 2.0}, {"step": 2, **validated}], panels)
    assert (tmp_path / CURVES).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 1
