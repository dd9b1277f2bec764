"""The weights of a learnt gate, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gnothi.calibration.learned_records import Learned, Shown
from gnothi.report.figures.drawing import COLOURS, INK, SERIES, Picture, draw, new_figure, save_figure, shortened, style
from gnothi.report.numbers import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 15
_LABELS = ("the answers differ in being right", "then evidence is right")


def save(documents: Sequence[Learned], path: Path) -> None:
    """A panel per document: the largest weights of its last step. Raises MissingDependency or InvalidSetting (an ending it
    cannot write)."""
    with style("the picture of the weights"):
        figure = new_figure(6 * len(documents), 5)
        panels = figure.subplots(1, len(documents), squeeze=False)[0]
        for axes, document in zip(panels, documents, strict=True):
            _bars(axes, document.steps[-1], COLOURS, "#444444")
            axes.set_title(document.dataset)
            axes.legend(fontsize=7)
        save_figure(figure, path)


def picture(name: str, step: Shown) -> Picture:
    """One step's largest weights; all of them in numbers."""
    largest = ", ".join(one.feature for one in step.weights[:3])
    svg = draw(
        f"{name}-weights",
        f"Weights known at {step.stage}, the largest: {largest}",
        lambda axes: _bars(axes, step, SERIES, INK),
        legend=len(_LABELS),
        columns=1,
        height=5,
    )
    return Picture(
        f"Known at “{step.stage}”",
        f"Weights in log-odds per standard deviation of each feature. It goes on above a gain of {step.needed:.3g}.",
        svg,
        ("feature", "known at", "differ", "evidence", "both"),
        [[one.feature, one.stage, *(signed(value) for value in (one.differ, one.evidence, one.both))] for one in step.weights],
    )


def _bars(axes: Axes, step: Shown, colours: Sequence[str], ink: str) -> None:
    weights = step.weights[:MOST][::-1]
    places = range(len(weights))
    series = [one.differ for one in weights], [one.evidence for one in weights]
    for shift, colour, label, values in zip((0.2, -0.2), colours, _LABELS, series, strict=False):
        axes.barh([place + shift for place in places], values, 0.4, color=colour, label=label)
    axes.set_yticks(list(places), [shortened(one.feature) for one in weights])
    axes.axvline(0, color=ink, lw=0.8)
    axes.set_xlabel("log-odds per standard deviation")
