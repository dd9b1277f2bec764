"""One HTML file that shows runs: numbers, pictures, and each question with what happened. It loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.calibration.verdicts import truth
from gnothi.config import as_text
from gnothi.errors import MissingDependency
from gnothi.report.document import document
from gnothi.report.drill_down import MARKS, questions
from gnothi.report.figures import figures
from gnothi.report.figures.drawing import drawn
from gnothi.report.sections import Section, name_all
from gnothi.runs.folder import replace_file
from gnothi.runs.rows import group
from gnothi.version import __version__

QUESTIONS = 300
"""Questions shown one by one, over all data sets of a report."""
TRACE_BYTES = 4_000_000
"""Room for traces: a page of a few megabytes still opens on a phone."""


def write_report(sections: Sequence[Section], file: Path, documents: Sequence[Mapping[str, Any]] | None = None) -> None:
    """Raises MissingDependency where jinja2 or matplotlib is not installed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, render(sections, documents))


def render(sections: Sequence[Section], documents: Sequence[Mapping[str, Any]] | None = None) -> str:
    """The page; ``documents`` are those of the sections, made here where they are not given."""
    many = max(1, len(sections))
    found_in = documents or [document(section) for section in sections]
    return page(
        [
            _view(f"s{number}", section, found, name.title, max(1, QUESTIONS // many), TRACE_BYTES // many)
            for number, (section, found, name) in enumerate(zip(sections, found_in, name_all(sections), strict=True))
        ]
    )


def page(views: Sequence[Mapping[str, Any]]) -> str:
    """A page of sections, each as the template wants it. Raises MissingDependency."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependency("jinja2", "report", "the HTML report") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "share": figures.share,
        "number": figures.number,
        "interval": figures.interval,
        "p": _p,
        "percent": figures.percent,
        "money": _money,
        "metric": figures.metric_name,
    }
    return environment.get_template("report.html").render(sections=views, marks=MARKS, version=__version__)


def _view(name: str, section: Section, found: Mapping[str, Any], title: str, limit: int, room: int) -> dict[str, Any]:
    """What the template shows of a section."""
    by_method = group(section.rows)
    known = truth(by_method, trusting=section.trusting)
    gated = [method for method in found["methods"] if method["gate"]] if known else []
    measured = [
        figures.distributions(name, one["method"], by_method[one["method"]], known, one["gate"]) for one in gated if known
    ]
    return {
        "name": name,
        "replay": False,
        "title": title,
        "numbers": found,
        "known": known,
        "runs": [
            {"path": path.name, "settings": [(key, as_text(value)) for key, value in config.items()]}
            for path, config in zip(section.runs, section.configs, strict=True)
        ],
        "pictures": {
            "gates": drawn(figures.frontier(name, found), figures.search_errors(name, found)),
            "signals": drawn(*measured, figures.calibration(name, found)),
            "selective": drawn(figures.risk(name, found)),
            "costs": drawn(figures.spending(name, found), figures.quality(name, found)),
        },
        "questions": questions(section, limit, room),
        "methods": list(by_method),
    }


def _p(value: float) -> str:
    return f"{value:.1e}" if value < 0.001 else f"{value:.3f}"


def _money(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"
