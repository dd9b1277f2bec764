"""The picture is written, whatever there is to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.training.pictures import CURVES, Panel, draw_curves
from gnothi.training.reader import stages as reader
from gnothi.training.reranker import stages as reranker


@pytest.mark.parametrize("panels", [reader.KEPT.panels, reranker.KEPT.panels, (Panel("one", trained=("loss", "training")),)])
def test_the_picture_is_written(tmp_path: Path, panels: tuple[Panel, ...]) -> None:
    draw_curves(tmp_path, [], panels)
    validated = {"validation_loss": 1.0, "validation_accuracy": 0.5, "average_precision": 0.5, "first": 1.0}
    draw_curves(tmp_path, [{"step": 1, "loss": 2.0}, {"step": 2, **validated}], panels)
    assert (tmp_path / CURVES).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 1
