"""Pictures are written, whatever is missing of what they show."""

from __future__ import annotations

from pathlib import Path

from gnothi.training.pictures import CURVES, draw_curves
from gnothi.training.self_knowledge.figures import FAMILIARITY, PANELS, draw_familiarity


def test_pictures_are_written(tmp_path: Path) -> None:
    draw_familiarity(tmp_path, [0.0, 0.3, 1.0, 1.0], 10)
    draw_curves(tmp_path, [], PANELS)
    validated = {"validation_reward": 0.5, "yes_known": 0.9, "yes_unknown": None, "auroc": None, "refusal": 0.1}
    draw_curves(tmp_path, [{"step": 1, "reward": 0.1}, {"step": 2, **validated}], PANELS)
    for name in (FAMILIARITY, CURVES):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 2
