"""The picture is written, whatever there is to show."""

from __future__ import annotations

from pathlib import Path

from gnothi.training.reader.figures import CURVES, draw_curves


def test_the_picture_is_written(tmp_path: Path) -> None:
    draw_curves(tmp_path, [])
    draw_curves(tmp_path, [{"step": 1, "loss": 2.0}, {"step": 2, "validation_loss": 1.0, "validation_accuracy": 0.5}])
    assert (tmp_path / CURVES).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 1
