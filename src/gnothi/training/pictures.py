"""Pictures of trainings: made without a display, written at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency


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
