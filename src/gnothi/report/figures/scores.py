"""Where a signal's scores lie: for answers from memory that were right, and for those that were wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gnothi.report.figures.drawing import INK, SERIES, Picture, draw, identifier
from gnothi.report.numbers import interval, share
from gnothi.stats.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def picture(
    section: str,
    name: str,
    signal: str,
    scores: Sequence[float],
    wrong: Sequence[bool],
    asked: str,
    measured: tuple[float | None, Interval | None],
    thresholds: Sequence[float] = (),
) -> Picture | None:
    """Histograms with the ``thresholds``. ``asked`` says who tells what is wrong, ``measured`` are AUROC and its interval."""
    finite = [(score, is_wrong) for score, is_wrong in zip(scores, wrong, strict=True) if np.isfinite(score)]
    auroc, spread = measured
    if not finite or auroc is None:
        return None
    values = np.array([score for score, _ in finite])
    edges: list[float] = np.histogram_bin_edges(values, bins=min(30, max(5, int(np.sqrt(len(values)) * 1.5)))).tolist()
    groups = {flag: [score for score, is_wrong in finite if is_wrong == flag] for flag in (False, True)}

    def paint(axes: Axes) -> None:
        for flag, colour, label in ((False, SERIES[0], "right"), (True, SERIES[1], "wrong")):
            axes.hist(groups[flag], edges, color=colour, alpha=0.55, label=f"{asked} {label} ({len(groups[flag])})")
        for threshold in thresholds:
            axes.axvline(threshold, color=INK, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
        axes.set(xlabel=f"{signal} (higher: less certain)", ylabel="questions")

    infinite = len(scores) - len(finite)
    said = f"{name}: scores where answers were right and where wrong, AUROC {share(auroc)}"
    text = f"{said}; {infinite} infinite" if infinite else said
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
