"""Pictures of trainings: made without a display, written at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gnothi.errors import MissingDependency

CURVES = "curves.png"
BLUE, GREEN, RED, YELLOW, GREY = "#4477aa", "#228833", "#bb5566", "#ccaa33", "#bbbbbb"


class Panel(NamedTuple):
    """One pair of axes over the steps. ``trained`` is a figure of the training steps and its label; ``validated`` are figures
    of validations, by key, each with its label and colour. ``share``: values are between 0 and 1."""

    title: str
    validated: Mapping[str, tuple[str, str]] = {}
    trained: tuple[str, str] | None = None
    share: bool = False


def draw_curves(out: Path, metrics: Sequence[Mapping[str, Any]], panels: Sequence[Panel]) -> None:
    """``curves.png``, from the lines of ``metrics.jsonl``. Raises MissingDependency without matplotlib."""
    drawn = figure(2.4 + 2.4 * len(panels), 3.0)
    for axes, panel in zip(drawn.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(axes, metrics, panel)
    save(drawn, out / CURVES)


def _draw(axes: Any, metrics: Sequence[Mapping[str, Any]], panel: Panel) -> None:
    def plot(key: str, *style: str, **look: Any) -> None:
        points = [(line["step"], line[key]) for line in metrics if line.get(key) is not None]
        axes.plot([step for step, _ in points], [value for _, value in points], *style, **look)

    if panel.trained:
        plot(panel.trained[0], color=GREY, linewidth=1, label=panel.trained[1])
    for key, (label, colour) in panel.validated.items():
        plot(key, ".-", color=colour, linewidth=1.4, label=label)
    axes.set(title=panel.title, xlabel="step", xlim=(0, max([1, *(line["step"] for line in metrics)])))
    if panel.share:
        axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)


def figure(width: float, height: float) -> Any:
    """An empty figure, in inches. Raises MissingDependency without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the pictures of a training") from error
    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def save(figure: Any, path: Path) -> None:
    """As PNG, so that at any moment the old or the new picture is there."""
    temporary = path.with_name(f".{path.name}")
    figure.savefig(temporary, format="png", metadata={"Software": None})
    temporary.replace(path)
