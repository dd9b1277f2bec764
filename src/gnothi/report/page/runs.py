"""Runs as one HTML file: numbers, pictures, and each question with what happened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gnothi.calibration.verdicts import Truth, paired_scores, truth
from gnothi.config import as_text
from gnothi.report.document import Document, document
from gnothi.report.figures import frontier, methods, scores
from gnothi.report.figures.drawing import Picture, Styles
from gnothi.report.page.html import View, page, present, questions, write
from gnothi.report.sections import Section, name_all
from gnothi.report.summary import Method
from gnothi.runs.rows import Row, group

QUESTIONS = 300
"""Questions shown one by one, over all data sets of a report."""
TRACE_BYTES = 4_000_000
"""Room for traces: a page of a few megabytes still opens on a phone."""


def write_report(sections: Sequence[Section], file: Path, documents: Sequence[Document] | None = None) -> None:
    """Raises MissingDependency where jinja2 or matplotlib is not installed."""
    write(views(sections, documents), file)


def render(sections: Sequence[Section], documents: Sequence[Document] | None = None) -> str:
    """The page; ``documents`` are those of the sections, made here where they are not given."""
    return page(views(sections, documents))


def views(sections: Sequence[Section], documents: Sequence[Document] | None = None) -> list[View]:
    many = max(1, len(sections))
    own = documents or [document(section) for section in sections]
    return [
        _view(f"s{number}", section, report, name.title, max(1, QUESTIONS // many), TRACE_BYTES // many)
        for number, (section, report, name) in enumerate(zip(sections, own, name_all(sections), strict=True))
    ]


def _view(name: str, section: Section, report: Document, title: str, limit: int, room: int) -> View:
    by_method = group(section.rows)
    known = truth(by_method, trusting=section.trusting)
    styles = Styles(by_method)
    gated = [_scores(name, one, by_method[one.method], known) for one in report.methods] if known else []
    gates = report.gates
    line = frontier.picture(name, gates.gates, gates.points, styles) if gates else None
    return View(
        name=name,
        title=title,
        numbers=report,
        known=known,
        runs=[
            (path.name, [(key, as_text(value)) for key, value in config.items()])
            for path, config in zip(section.runs, section.configs, strict=True)
        ],
        pictures={
            "reached": present(methods.reached(name, report.methods)),
            "gates": present(line, methods.search_errors(name, report.methods)),
            "signals": present(*gated, scores.reliability(name, report.reliability, styles)),
            "selective": present(methods.risk(name, report.selective, styles)),
            "costs": present(methods.spending(name, report, styles), methods.quality(name, report, styles)),
        },
        questions=questions(section, limit, room),
        methods=list(by_method),
    )


def _scores(name: str, method: Method, rows: Sequence[Row], known: Truth) -> Picture | None:
    """The gate's highest score of each question, with the thresholds."""
    gate = method.gate
    if gate is None:
        return None
    source = "familiarity says" if known.source == "familiarity" else f"{known.source} was"
    measured = gate.auroc, gate.interval
    return scores.distribution(name, method.method, gate.signal, *paired_scores(rows, known), source, measured, gate.thresholds)
