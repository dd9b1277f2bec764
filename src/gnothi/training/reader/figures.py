"""The picture of a reader's training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.training.pictures import figure, save

CURVES = "curves.png"


def draw_curves(out: Path, metrics: Sequence[Mapping[str, Any]]) -> None:
    """Loss of training and validation, and validation accuracy, over the steps, from the lines of ``metrics.jsonl``.
    Raises MissingDependency without matplotlib."""
    drawn = figure(7.2, 3.0)
    loss, accuracy = drawn.subplots(1, 2)
    training = [(line["step"], line["loss"]) for line in metrics if "loss" in line]
    validated = [line for line in metrics if "validation_loss" in line]
    steps = [line["step"] for line in validated]
    loss.plot([step for step, _ in training], [value for _, value in training], color="#bbbbbb", linewidth=1, label="training")
    loss.plot(steps, [line["validation_loss"] for line in validated], ".-", color="#4477aa", linewidth=1.4, label="validation")
    rights = [line["validation_accuracy"] for line in validated]
    accuracy.plot(steps, rights, ".-", color="#228833", linewidth=1.4, label="validation")
    accuracy.set_ylim(-0.02, 1.02)
    for axes, title in ((loss, "loss (nats a token)"), (accuracy, "right answers")):
        axes.set(title=title, xlabel="step", xlim=(0, max([1, *steps])))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
    save(drawn, out / CURVES)
