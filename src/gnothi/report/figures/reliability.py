"""Reliability diagram: how often the answer from memory was wrong against the probability that a calibrated score gives it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gnothi.calibration.choose import Probabilities
from gnothi.report.document import Reliability
from gnothi.report.figures.drawing import COLOURS, INK, Picture, Styles, draw, new_figure, save_figure, shortened, style
from gnothi.report.numbers import share
from gnothi.stats.reliability import Bin

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save(curves: Probabilities, title: str, path: Path) -> None:
    """Both curves, in bins of predictions on questions that they were not fitted on.

    Raises MissingDependency or InvalidSetting."""
    with style("the reliability diagram"):
        figure = new_figure(4.6, 4.2)
        axes = figure.subplots()
        _diagonal(axes, "#888888")
        _curve(axes, curves.platt_bins, f"Platt (ECE {share(curves.platt_ece)})", COLOURS[0], "o")
        _curve(axes, curves.isotonic_bins, f"isotonic (ECE {share(curves.isotonic_ece)})", COLOURS[1], "s")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        save_figure(figure, path)


def picture(section: str, curves: Sequence[Reliability], styles: Styles) -> Picture | None:
    """Of the gates' scores, cross-fitted."""
    if not curves:
        return None

    def paint(axes: Axes) -> None:
        _diagonal(axes, INK)
        for one in curves:
            label = f"{shortened(one.method)} (ECE {share(one.ece)})"
            _curve(axes, one.bins, label, styles.colour(one.method), styles.marker(one.method))

    said = ", ".join(f"{one.method}: calibration error {share(one.ece)}" for one in curves)
    return Picture(
        "Calibration",
        "Gate scores as probabilities that the closed-book answer is wrong (isotonic regression, fitted on the other "
        "folds) against how often it was. Dots on the line are right; large dots hold many questions.",
        draw(f"{section}-calibration", f"Reliability of {said}", paint, len(curves)),
        ("method", "predicted", "observed", "questions"),
        [[one.method, share(bin.predicted), share(bin.observed), str(bin.n)] for one in curves for bin in one.bins],
    )


def _diagonal(axes: Axes, colour: str) -> None:
    axes.plot((0, 1), (0, 1), "--", color=colour, alpha=0.5, lw=1)
    limits = {"xlim": (-0.02, 1.02), "ylim": (-0.02, 1.02)}
    axes.set(xlabel="predicted share of wrong answers", ylabel="observed share", **limits)


def _curve(axes: Axes, bins: Sequence[Bin], label: str, colour: str, marker: str) -> None:
    most = max(bin.n for bin in bins)
    x, y = [bin.predicted for bin in bins], [bin.observed for bin in bins]
    axes.plot(x, y, color=colour, lw=1)
    axes.scatter(x, y, s=[15 + 65 * bin.n / most for bin in bins], marker=marker, color=colour, label=label)
