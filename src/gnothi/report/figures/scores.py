"""Where a signal's scores lie for answers from memory that were right and that were wrong; and how often they were wrong
against the probability that a calibrated score gives it (a reliability diagram)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gnothi.calibration.choose import Probabilities
from gnothi.report.document import Reliability
from gnothi.report.figures.drawing import (
    COLOURS,
    INK,
    SERIES,
    Picture,
    Styles,
    draw,
    identifier,
    new_figure,
    save_figure,
    shortened,
    style,
)
from gnothi.report.numbers import interval, share
from gnothi.stats.intervals import Interval
from gnothi.stats.reliability import Bin

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def distribution(
    section: str,
    name: str,
    signal: str,
    scores: Sequence[float],
    wrong: Sequence[bool],
    truth: str,
    measured: tuple[float | None, Interval | None],
    thresholds: Sequence[float] = (),
) -> Picture | None:
    """Histograms with the ``thresholds``. ``truth`` says who tells what is wrong, ``measured`` are AUROC and its interval."""
    finite = [(score, is_wrong) for score, is_wrong in zip(scores, wrong, strict=True) if np.isfinite(score)]
    auroc, spread = measured
    if not finite or auroc is None:
        return None
    values = np.array([score for score, _ in finite])
    edges: list[float] = np.histogram_bin_edges(values, bins=min(30, max(5, int(np.sqrt(len(values)) * 1.5)))).tolist()
    groups = {flag: [score for score, is_wrong in finite if is_wrong == flag] for flag in (False, True)}

    def paint(axes: Axes) -> None:
        for flag, colour, label in ((False, SERIES[0], "right"), (True, SERIES[1], "wrong")):
            axes.hist(groups[flag], edges, color=colour, alpha=0.55, label=f"{truth} {label} ({len(groups[flag])})")
        for threshold in thresholds:
            axes.axvline(threshold, color=INK, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
        axes.set(xlabel=f"{signal} (higher: less certain)", ylabel="questions")

    infinite = len(scores) - len(finite)
    summary = f"{name}: scores where answers were right and where wrong, AUROC {share(auroc)}"
    text = f"{summary}; {infinite} infinite" if infinite else summary
    counts = [np.histogram(groups[flag], edges)[0].tolist() for flag in (False, True)]
    return Picture(
        f"What {name} measures where the model knows and where it does not",
        f"AUROC {share(auroc)} {interval(spread)}: the chance that a wrong answer scores above a right one. "
        "The less the two overlap, the better a threshold can do.",
        draw(f"{section}-distribution-{identifier(name)}", text, paint, 2 + len(thresholds)),
        ("score from", "to", "right", "wrong"),
        [
            [f"{low:.4g}", f"{high:.4g}", str(right), str(missed)]
            for low, high, right, missed in zip(edges[:-1], edges[1:], *counts, strict=True)
            if right or missed
        ],
    )


def save_reliability(curves: Probabilities, title: str, path: Path) -> None:
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


def reliability(section: str, curves: Sequence[Reliability], styles: Styles) -> Picture | None:
    """Of the gates' scores, cross-fitted."""
    if not curves:
        return None

    def paint(axes: Axes) -> None:
        _diagonal(axes, INK)
        for one in curves:
            label = f"{shortened(one.method)} (ECE {share(one.ece)})"
            _curve(axes, one.bins, label, styles.colour(one.method), styles.marker(one.method))

    summary = ", ".join(f"{one.method}: calibration error {share(one.ece)}" for one in curves)
    return Picture(
        "Calibration",
        "Gate scores as probabilities that the answer from memory is wrong (isotonic regression, fitted on the other "
        "folds) against how often it was. Dots on the line are right; large dots hold many questions.",
        draw(f"{section}-calibration", f"Reliability of {summary}", paint, len(curves)),
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
