"""How many steps a training takes that is to see each question so often."""

from __future__ import annotations

import pytest

from gnothi.training.self_knowledge.settings import TrainingSettings


@pytest.mark.parametrize(
    ("epochs", "updates", "steps"), [(None, 2, 200), (1.0, 2, 2 * 5477), (1.0, 1, 5477), (0.5, 2, 2 * 2739), (0.01, 2, 2 * 55)]
)
def test_every_question_is_drawn_once_an_epoch(epochs: float | None, updates: int, steps: int) -> None:
    settings = TrainingSettings(epochs=epochs, updates=updates)
    assert settings.in_all(87_622) == steps
