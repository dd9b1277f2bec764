"""The page's frame: one HTML file that loads nothing from anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency
from gnothi.report import numbers
from gnothi.report.figures.drawing import Picture
from gnothi.report.page.questions import MARKS, Question
from gnothi.version import __version__

SHOWN = 25
"""Questions that are listed; the rest is folded away."""
_SECTION = re.compile(r'<section id="(\w+)">.*?</section>', re.DOTALL)
_HEADING, _CONTENTS = re.compile(r"<h3>(.*?)</h3>"), "<!-- contents -->"
FILTERS = ("share", "number", "interval", "percent", "money", "chance", "signed", "counted", "metric_name")


@dataclass(frozen=True, slots=True)
class View:
    """What the template shows of a section: ``name`` is unique within the page, ``numbers`` a document: of a run, or of what
    the ``template`` is for."""

    name: str
    title: str
    numbers: Any
    pictures: dict[str, list[Picture]]
    template: str = ""
    runs: Sequence[tuple[str, Sequence[tuple[str, str]]]] = ()
    known: Any = None
    questions: Sequence[Question] = ()
    methods: Sequence[str] = field(default_factory=list)


def page(views: Sequence[View]) -> str:
    """Raises MissingDependency where jinja2 is not installed."""
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
    environment.filters |= {name: getattr(numbers, name) for name in FILTERS}
    html = environment.get_template("report.html").render(sections=views, marks=MARKS, version=__version__, shown=SHOWN)
    return _SECTION.sub(_with_contents, html)


def _with_contents(section: re.Match[str]) -> str:
    """Headings get names, and a list of them stands where the section begins."""
    found: list[str] = []

    def named(heading: re.Match[str]) -> str:
        found.append(heading[1])
        return f'<h3 id="{section[1]}-{len(found)}">{heading[1]}</h3>'

    text = _HEADING.sub(named, section[0])
    links = "".join(f'<a href="#{section[1]}-{number}">{title}</a>' for number, title in enumerate(found, start=1))
    return text.replace(_CONTENTS, f"<nav>{links}</nav>" if len(found) > 1 else "", 1)


def drawn(*pictures: Picture | None) -> list[Picture]:
    return [picture for picture in pictures if picture is not None]
