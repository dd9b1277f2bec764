"""Pictures of a self-knowledge training: how familiar its questions are, and what is drawn of how the training went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gnothi.training.pictures import BLUE, GREEN, RED, YELLOW, Panel, figure, save
from gnothi.training.self_knowledge.reward import INDIFFERENT

FAMILIARITY = "familiarity.png"
PANELS = (
    Panel("reward", {"validation_reward": ("validation", BLUE)}, trained=("reward", "sampled")),
    Panel('P("Yes")', {"yes_known": ("known", GREEN), "yes_unknown": ("unknown", RED), "auroc": ("AUROC", BLUE)}, share=True),
    Panel(
        "rates",
        {"refusal": ("refusal (of known)", YELLOW), "hallucination": ("hallucination (Yes and wrong)", RED)},
        share=True,
    ),
)


def draw_familiarity(out: Path, rates: Sequence[float], n: int) -> None:
    """A histogram of acc_rate, one bar per possible value of n answers, with the familiarity at which Yes is worth as much
    as No. Raises MissingDependency without matplotlib."""
    drawn = figure(5.2, 3.2)
    axes = drawn.subplots()
    values, counts = np.unique(np.round(np.asarray(rates, dtype=float) * n), return_counts=True)
    axes.bar(values / n, counts, width=0.8 / n, color=BLUE)
    axes.axvline(INDIFFERENT, color=RED, linestyle="--", linewidth=1, label="above: Yes is worth more than No")
    axes.set(
        xlabel=f"share of {n} sampled answers that are right", ylabel="questions", xlim=(-0.5 / n - 0.02, 1 + 0.5 / n + 0.02)
    )
    axes.legend(fontsize=8, frameon=False)
    save(drawn, out / FAMILIARITY)
