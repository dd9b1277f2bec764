"""Pictures of a self-knowledge training: how familiar its questions are, and how the training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnothi.training.pictures import figure, save
from gnothi.training.self_knowledge.reward import INDIFFERENT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAMILIARITY, CURVES = "familiarity.png", "curves.png"


def draw_familiarity(out: Path, rates: Sequence[float], n: int) -> None:
    """A histogram of acc_rate, one bar per possible value of n answers, with the familiarity at which Yes is worth as much
    as No. Raises MissingDependency without matplotlib."""
    drawn = figure(5.2, 3.2)
    axes = drawn.subplots()
    values, counts = np.unique(np.round(np.asarray(rates, dtype=float) * n), return_counts=True)
    axes.bar(values / n, counts, width=0.8 / n, color="#4477aa")
    axes.axvline(INDIFFERENT, color="#bb5566", linestyle="--", linewidth=1, label="above: Yes is worth more than No")
    axes.set(
        xlabel=f"share of {n} sampled answers that are right", ylabel="questions", xlim=(-0.5 / n - 0.02, 1 + 0.5 / n + 0.02)
    )
    axes.legend(fontsize=8, frameon=False)
    save(drawn, out / FAMILIARITY)


def draw_curves(out: Path, metrics: Sequence[Mapping[str, Any]]) -> None:
    """Reward, P("Yes") of known and unknown questions, and the rates of refusal and hallucination over the steps, from the
    lines of ``metrics.jsonl``. Raises MissingDependency without matplotlib."""
    drawn = figure(9.6, 3.0)
    reward, yes, rates = drawn.subplots(1, 3)
    training = [line for line in metrics if "reward" in line]
    validated = [line for line in metrics if "validation_reward" in line]
    steps = [line["step"] for line in validated]

    def plot(axes: Axes, name: str, label: str, colour: str) -> None:
        shown = [(line["step"], line[name]) for line in validated if line.get(name) is not None]
        axes.plot([step for step, _ in shown], [value for _, value in shown], ".-", color=colour, label=label, linewidth=1.4)

    reward.plot(
        [line["step"] for line in training],
        [line["reward"] for line in training],
        color="#bbbbbb",
        linewidth=1,
        label="sampled",
    )
    plot(reward, "validation_reward", "validation", "#4477aa")
    plot(yes, "yes_known", "known", "#228833")
    plot(yes, "yes_unknown", "unknown", "#bb5566")
    plot(yes, "auroc", "AUROC", "#4477aa")
    plot(rates, "refusal", "refusal (of known)", "#ccaa33")
    plot(rates, "hallucination", "hallucination (Yes and wrong)", "#bb5566")
    for axes, title in ((reward, "reward"), (yes, 'P("Yes")'), (rates, "rates")):
        axes.set(title=title, xlabel="step", xlim=(0, max([1, *steps])))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
    for axes in (yes, rates):
        axes.set_ylim(-0.02, 1.02)
    save(drawn, out / CURVES)
