"""Accuracy against retrieval rate: every threshold of every signal, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.report.titles import name_all

COLOURS = ("#4477aa", "#bb5566", "#228833", "#ccaa33", "#66ccee", "#aa3377")

LINES = ("-", "--", "-.")
CROWDED = 6
"""With more signals, their names stand beside the lines and not among them."""


def save(documents: Sequence[Mapping[str, Any]], path: Path) -> None:
    """One panel per document of ``gates.document``. Raises MissingDependency or InvalidSetting (an ending it cannot write)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the picture of the frontiers") from error
    wide = [5.2 if len(found["signals"]) <= CROWDED else 7.2 for found in documents]
    figure = Figure(figsize=(sum(wide), 4), layout="constrained", dpi=120)
    panels = figure.subplots(1, len(documents), squeeze=False)[0]
    for axes, found, name in zip(panels, documents, name_all(documents), strict=True):
        _panel(axes, found, name.title)
    save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure, the same bytes for the same figure. Raises InvalidSetting for an ending it cannot write."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise InvalidSetting(f"got the picture {path}, expected a name that ends in .png, .svg or .pdf.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure.savefig(temporary, format=kind, metadata=metadata)
    temporary.replace(path)


def _panel(axes: Any, found: Mapping[str, Any], title: str) -> None:
    for number, (name, signal) in enumerate(found["signals"].items()):
        colour = COLOURS[number % len(COLOURS)]
        line = signal["frontier"]
        label = f"{name} (AUROC {signal['auroc']:.2f})" if signal["auroc"] is not None else name
        axes.plot(
            [point["retrieval_rate"] for point in line],
            [point["accuracy"] for point in line],
            LINES[number // len(COLOURS) % len(LINES)],
            color=colour,
            label=label,
            lw=1.4,
        )
        if chosen := signal["chosen"]:
            axes.plot([chosen["retrieval_rate"]], [chosen["accuracy"]], "o", color=colour)
    axes.plot([0, 1], [found["never"], found["always"]], "--", color="#888888", lw=1, label="retrieving at random")
    axes.plot([0, 1], [found["never"], found["always"]], "s", color="#444444", ms=5)
    axes.plot([found["oracle_retrieval_rate"]], [found["oracle"]], "*", color="#444444", ms=11, label="oracle")
    axes.set(xlabel="share of questions that retrieve", ylabel=f"accuracy ({found['metric']})", title=title)
    axes.grid(alpha=0.3)
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(found["signals"]) > CROWDED else {}
    axes.legend(fontsize=7, frameon=False, **beside)
