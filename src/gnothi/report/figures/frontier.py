"""Accuracy against retrieval rate: every threshold of every signal, each method as a point, the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.calibration.compare import Compared, Gates, Point, Signal
from gnothi.report.document import MethodPoint
from gnothi.report.figures.drawing import (
    COLOURS,
    INK,
    Picture,
    Styles,
    draw,
    new_figure,
    save_figure,
    shortened,
    style,
    thinned,
)
from gnothi.report.numbers import metric_name, percent, share
from gnothi.report.titles import name_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CROWDED = 6
"""With more signals, their names stand beside the lines and not among them."""
_RATES = (0.1, 0.25, 0.5, 0.75, 0.9)


def save(documents: Sequence[Compared], path: Path) -> None:
    """One panel per document. Raises MissingDependency or InvalidSetting (an ending it cannot write)."""
    wide = [5.2 if len(document.gates.signals) <= CROWDED else 7.2 for document in documents]
    with style("the picture of the frontiers"):
        figure = new_figure(sum(wide), 4)
        panels = figure.subplots(1, len(documents), squeeze=False)[0]
        for axes, document, name in zip(panels, documents, name_all(documents), strict=True):
            gates = document.gates
            looks = Styles(gates.signals, COLOURS)
            for signal, one in gates.signals.items():
                label = signal if one.auroc is None else f"{signal} (AUROC {one.auroc:.2f})"
                _line(axes, one, looks.colour(signal), looks.dashes(signal), label)
            _ends(axes, gates, "#444444")
            axes.set_title(name.title)
            beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(looks) > CROWDED else {}
            axes.legend(fontsize=7, **beside)
        save_figure(figure, path)


def picture(section: str, gates: Gates, points: Sequence[MethodPoint], styles: Styles) -> Picture:
    looks = Styles(gates.signals)
    # A method's line has its point's colour, unless it measured several.
    shared = len({signal.method for signal in gates.signals.values()}) < len(gates.signals)

    def paint(axes: Axes) -> None:
        _ends(axes, gates, INK)
        for name, signal in gates.signals.items():
            if shared:
                _line(axes, signal, looks.colour(name), looks.dashes(name), shortened(name))
            else:
                _line(axes, signal, styles.colour(signal.method), "-", f"any threshold of {shortened(name, 22)}")
        for point in points:
            colour, x, y = styles.colour(point.method), point.retrieval_rate, point.accuracy
            if point.interval:
                axes.plot((x, x), point.interval, color=colour, lw=0.8, alpha=0.5)
            axes.plot([x], [y], styles.marker(point.method), color=colour, ms=7, label=shortened(point.method))

    rows = [
        [name, share(signal.auroc), *(share(_reached(signal.frontier, rate)) for rate in _RATES)]
        for name, signal in gates.signals.items()
    ]
    rows += [[f"{point.method} (method)", "", *_at_its_place(point)] for point in points]
    summary = "; ".join(f"{point.method}: {share(point.accuracy)} at {share(point.retrieval_rate)}" for point in points)
    svg = draw(
        f"{section}-frontier",
        f"{metric_name(gates.metric).capitalize()} against the share of questions with a search. {summary}; "
        f"oracle: {share(gates.oracle)}",
        paint,
        2 + len(gates.signals) + len(points),
    )
    return Picture(
        "Accuracy against retrieval rate",
        f"Further up is better, further left is cheaper. Lines: at each threshold, the answer of {gates.names['never']} where "
        f"the score is below it, else that of {gates.names['always']}. Crosses: a threshold that was chosen on other "
        "questions. Points: the methods as they ran; these may do more than choose between the two answers.",
        svg,
        ("signal or method", "AUROC", "at 10% retrieval", "25%", "50%", "75%", "90%"),
        rows,
    )


def _line(axes: Axes, signal: Signal, colour: str, dashes: str, label: str) -> None:
    """A cross for the chosen threshold."""
    line = thinned(signal.frontier)
    x, y = [point.retrieval_rate for point in line], [point.accuracy for point in line]
    axes.plot(x, y, dashes, color=colour, lw=1.5, label=label)
    if chosen := signal.chosen:
        axes.plot([chosen.worth.retrieval_rate], [chosen.worth.accuracy], "+", color=colour, ms=10, mew=2)


def _ends(axes: Axes, gates: Gates, ink: str) -> None:
    axes.plot([0, 1], [gates.never, gates.always], ":", color=ink, alpha=0.6, lw=1.2, label="retrieving at random")
    best = [gates.oracle_retrieval_rate], [gates.oracle]
    axes.plot(*best, "*", color=ink, ms=11, label="oracle of never and always")
    axes.set(xlabel="share of questions with a search", ylabel=metric_name(gates.metric), xlim=(-0.03, 1.03))
    axes.grid(color=ink, alpha=0.12)


def _reached(line: Sequence[Point], rate: float) -> float | None:
    """The accuracy of the threshold that retrieves most, up to a rate."""
    within = [point for point in line if point.retrieval_rate <= rate]
    return max(within, key=lambda point: point.retrieval_rate).accuracy if within else None


def _at_its_place(point: MethodPoint) -> list[str]:
    """A method's accuracy in the column nearest to its retrieval rate."""
    rate = point.retrieval_rate
    nearest = min(_RATES, key=lambda column: abs(column - rate))
    return [f"{share(point.accuracy)} at {percent(rate)}" if column == nearest else "" for column in _RATES]
