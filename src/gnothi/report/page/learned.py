"""What learnt gates come to, as one HTML file like a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gnothi.calibration.learned_records import Learned
from gnothi.report.figures import learned
from gnothi.report.page.html import View, page
from gnothi.runs.folder import replace_file


def write_page(documents: Sequence[Learned], file: Path) -> None:
    """A section per document. Raises MissingDependency where jinja2 or matplotlib is not installed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    views = []
    for number, found in enumerate(documents):
        name = f"s{number}"
        weights = [learned.picture(f"{name}-{place}", step) for place, step in enumerate(found.steps)]
        views.append(View(name, found.dataset, found, {"weights": weights}, template="learned.html"))
    replace_file(file, page(views))
