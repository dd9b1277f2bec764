"""Reliability diagram: how often the answer from memory was wrong against the probability that a calibrated score gives it."""

from __future__ import annotations

from pathlib import Path

from gnothi.calibration.choose import Probabilities
from gnothi.errors import MissingDependency
from gnothi.report.figures.frontier import COLOURS, save_figure


def save(curves: Probabilities, title: str, path: Path) -> None:
    """Both curves, in bins of predictions on questions that they were not fitted on.

    Raises MissingDependency or InvalidSetting."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the reliability diagram") from error
    figure = Figure(figsize=(4.6, 4.2), layout="constrained", dpi=120)
    axes = figure.subplots()
    axes.plot((0, 1), (0, 1), "--", color="#888888", lw=1)
    drawn = (("Platt", curves.platt_bins, curves.platt_ece), ("isotonic", curves.isotonic_bins, curves.isotonic_ece))
    for (name, bins, missed), colour, marker in zip(drawn, COLOURS, "os", strict=False):
        most = max(bin.n for bin in bins)
        x, y = [bin.predicted for bin in bins], [bin.observed for bin in bins]
        axes.plot(x, y, color=colour, lw=1, label=f"{name} (ECE {missed:.3f})")
        axes.scatter(x, y, s=[15 + 65 * bin.n / most for bin in bins], marker=marker, color=colour)
    axes.set(
        xlabel="predicted share of wrong answers", ylabel="observed share", title=title, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    save_figure(figure, path)
