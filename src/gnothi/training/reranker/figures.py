"""The picture of a re-ranker's training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency

CURVES = "curves.png"


def draw_curves(out: Path, metrics: Sequence[Mapping[str, Any]]) -> None:
    """Loss, and how high the validation questions' positives stand, over the steps, from the lines of ``metrics.jsonl``.

    Raises MissingDependency without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the pictures of a training") from error
    figure = Figure(figsize=(7.2, 3.0), layout="constrained", dpi=120)
    loss, rank = figure.subplots(1, 2)
    trained = [line for line in metrics if "loss" in line]
    validated = [line for line in metrics if "average_precision" in line]
    loss.plot([line["step"] for line in trained], [line["loss"] for line in trained], color="#bbbbbb", linewidth=1)
    steps = [line["step"] for line in validated]
    for name, label, colour in (
        ("average_precision", "average precision", "#4477aa"),
        ("first", "a positive comes first", "#228833"),
    ):
        rank.plot(steps, [line[name] for line in validated], ".-", color=colour, label=label, linewidth=1.4)
    loss.set(title="loss", xlabel="step")
    rank.set(title="validation questions", xlabel="step", ylim=(-0.02, 1.02))
    rank.legend(fontsize=7, frameon=False)
    for axes in (loss, rank):
        axes.grid(alpha=0.3)
        axes.set_xlim(0, max([1, *steps]))
    temporary = out / f".{CURVES}"
    figure.savefig(temporary, format="png", metadata={"Software": None})
    temporary.replace(out / CURVES)
