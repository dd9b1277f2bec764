"""The weights of a learnt gate, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gnothi.calibration.learned_records import Learned
from gnothi.report.figures.drawing import COLOURS, new_figure, save_figure, shortened, style

SHOWN = 15


def save(documents: Sequence[Learned], path: Path) -> None:
    """A panel per document: the largest weights of its last step. Raises MissingDependency or InvalidSetting (an ending it
    cannot write)."""
    with style("the picture of the weights"):
        figure = new_figure(6 * len(documents), 5)
        panels = figure.subplots(1, len(documents), squeeze=False)[0]
        for axes, found in zip(panels, documents, strict=True):
            weights = found.steps[-1].weights[:SHOWN][::-1]
            places = range(len(weights))
            for shift, colour, label, values in (
                (0.2, COLOURS[0], "the answers differ in being right", [one.differ for one in weights]),
                (-0.2, COLOURS[1], "then evidence is right", [one.evidence for one in weights]),
            ):
                axes.barh([place + shift for place in places], values, 0.4, color=colour, label=label)
            axes.set_yticks(list(places), [shortened(one.feature) for one in weights])
            axes.axvline(0, color="#444444", lw=0.8)
            axes.set_xlabel("log-odds per standard deviation")
            axes.set_title(found.dataset)
            axes.legend(fontsize=7)
        save_figure(figure, path)
