"""Early stopping, and checkpoints that were being written when the process ended."""

from __future__ import annotations

from pathlib import Path

from gnothi.training.finetuning import newest_checkpoint, out_of_patience, read_header, write_header


def test_patience() -> None:
    assert not out_of_patience([0.1, 0.3, 0.2, 0.3], 3)
    assert out_of_patience([0.1, 0.3, 0.2, 0.3], 2)
    assert out_of_patience([0.3, 0.3], 1)
    assert not out_of_patience([0.3], 1)


def test_a_torn_checkpoint_does_not_count(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "absent") is None
    for step, state in ((2, "{}"), (10, "{}"), (12, '{"torn'), (14, None)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-2"]


def test_a_header_says_that_it_is_finished(tmp_path: Path) -> None:
    assert read_header(tmp_path) is None
    write_header(tmp_path, {"steps": 3})
    assert read_header(tmp_path) == {"steps": 3}
