"""The page's frame: one HTML file that loads nothing from anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gnothi import events
from gnothi.calibration.baselines import never_of
from gnothi.calibration.verdicts import question_scores
from gnothi.errors import InvalidInput, MissingDependency, counted
from gnothi.report import numbers, tables
from gnothi.report.breakdown import action
from gnothi.report.figures.drawing import Picture
from gnothi.report.sections import Section
from gnothi.report.words import STAGES, THOUGHT, Line, Narrator
from gnothi.runs.answer_stages import MISREAD, UNFOUND, UNREAD
from gnothi.runs.folder import read_events, replace_file
from gnothi.runs.rows import Key, Row, group
from gnothi.version import __version__

# A report's questions one by one, each with what happened, and marks to find them by.

_NEVER = "the method that never searches"
MARKS = {
    "wrong": "wrong answers",
    "right": "right answers",
    "over": f"searched although {_NEVER} was right (over-search)",
    "under": f"did not search although {_NEVER} was wrong (under-search)",
    "misread": "read the answer, but answered wrongly",
    "unread": "found the answer, but did not read it",
    "unfound": "did not find the answer",
    "searched": "searched",
    "abstained": "said that it does not know",
    "failed": "failed",
}
"""What an answer can be found by."""


STEPS, LINES, CHARACTERS = 60, 8, 320
"""Of a question the events, of an event the lines below the first, and of a line the letters that are shown."""


@dataclass(frozen=True, slots=True)
class Step:
    """An event in words: ``label`` and ``title`` (which may be empty), and (tone, text) of what stands below."""

    kind: str
    label: str
    title: str
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A method's answer: what was ``done``, how far it came (``stage``), the gate's ``score``, ``hints`` in words, ``marks`` to
    find it by; ``steps`` is None where there was no more room."""

    row: Row
    done: str
    stage: str
    score: float | None
    hints: tuple[str, ...]
    marks: tuple[str, ...]
    steps: list[Step] | None


@dataclass(frozen=True, slots=True)
class Question:
    """All methods' answers to it; ``facts`` are its metadata."""

    id: str
    first: Row
    answers: tuple[QuestionAnswer, ...]
    facts: tuple[tuple[str, str], ...]
    differ: bool

    @property
    def marks(self) -> list[str]:
        return [mark for answer in self.answers for mark in answer.marks] + (["differ"] if self.differ else [])


def questions(section: Section, limit: int, room: int) -> list[Question]:
    """At most ``limit`` of them, failures and disagreements first to be taken, with about ``room`` characters of traces."""
    chosen = _chosen(section.rows, limit)
    by_method = group(section.rows)
    never, foreign = never_of(by_method, section.trusting), section.foreign()
    closed = {row.question_id: row.metrics["em"] >= 1 for row in by_method.get(never or "", ()) if row.metrics}
    numbers = {name: number for number, name in enumerate(by_method)}
    scores = {name: question_scores(rows) for name, rows in by_method.items()}
    recorded = _events(chosen, section)
    views = []
    for question, rows in chosen.items():
        answers = []
        for row in rows:
            described = steps(recorded.get(row.key, []))
            room -= sum(len(step.title) + sum(len(text) for _, text in step.lines) for step in described)
            marks = _marks(row, None if row.method in foreign else closed.get(question), row.method == never)
            answers.append(
                QuestionAnswer(
                    row=row,
                    done=action(row) if not row.failed else "",
                    stage=STAGES.get(row.stage, row.stage),
                    score=scores[row.method].get(question),
                    hints=tuple(MARKS[mark].replace(_NEVER, never or "") for mark in marks if mark in ("over", "under")),
                    marks=tuple(f"{mark}-{numbers[row.method]}" for mark in marks),
                    steps=described if room > 0 else None,
                )
            )
        facts = tuple((key, str(value)) for key, value in rows[0].metadata.items() if isinstance(value, str | int | float))
        differ = len({row.metrics.get("em") for row in rows}) > 1
        views.append(Question(question, rows[0], tuple(answers), facts, differ))
    return views


def steps(recorded: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Recorded events in words, long ones cut; one that cannot be read (of a later version) is named."""
    narrator = Narrator()
    described = [_step(narrator, record) for record in recorded[:STEPS]]
    if len(recorded) > STEPS:
        described.append(Step("more", "", f"{counted(len(recorded) - STEPS, 'more event')} in events.jsonl"))
    return described


def _step(narrator: Narrator, record: Mapping[str, Any]) -> Step:
    kind = str(record.get("event", "event"))
    try:
        lines = [line for line in narrator.describe(events.read(record)) if not line.instead]
    except InvalidInput:
        return Step(kind, kind, "written by another version of gnothi: see events.jsonl")
    head, below = (lines[0], lines[1:]) if lines[0].whole else (Line(lines[0].label, ""), lines)
    below = sorted(below, key=lambda line: line.detail)
    texts = [(line.tone, _cut(f"{_marked(line)} {line.lead} {line.text}")) for line in below[:LINES]]
    if len(below) > LINES:
        texts.append(("soft", f"and {len(below) - LINES} more"))
    return Step(kind, f"{head.label} {head.step or ''}".strip(), _cut(head.text), tuple(texts))


def _marked(line: Line) -> str:
    """What stands before a line below the first. What was thought is said to be, for it is no reply."""
    return line.label if line.label == THOUGHT else str(line.step or "")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"


def _marks(row: Row, closed_right: bool | None, never: bool) -> list[str]:
    if row.failed:
        return ["failed"]
    holds = {
        "wrong": bool(row.metrics) and row.metrics["em"] < 1,
        "right": bool(row.metrics) and row.metrics["em"] >= 1,
        "over": not never and closed_right is True and row.retrieved,
        "under": not never and closed_right is False and not row.retrieved,
        **{mark: row.stage == stage for mark, stage in (("misread", MISREAD), ("unread", UNREAD), ("unfound", UNFOUND))},
        "searched": row.retrieved,
        "abstained": action(row) == "abstain",
    }
    return [mark for mark, applies in holds.items() if applies]


def _chosen(rows: Sequence[Row], limit: int) -> dict[str, list[Row]]:
    """The rows of at most ``limit`` questions, in the run's order: failures before disagreements before the rest."""
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(row.question_id, []).append(row)
    ranked = sorted(by_question, key=lambda question: _interest(by_question[question]), reverse=True)
    chosen = set(ranked[:limit])
    return {question: own for question, own in by_question.items() if question in chosen}


def _interest(rows: Sequence[Row]) -> tuple[bool, bool, bool]:
    scores = {row.metrics.get("em") for row in rows}
    return any(row.failed for row in rows), len(scores) > 1, 0.0 in scores


def _events(questions: Mapping[str, Sequence[Row]], section: Section) -> dict[Key, list[dict[str, Any]]]:
    keys = [row.key for rows in questions.values() for row in rows]
    events_of: dict[Key, list[dict[str, Any]]] = {}
    for path in section.runs:
        originals = {section.origin[key][1]: key for key in keys if section.origin[key][0] == path}
        events_of |= {originals[original]: events for original, events in read_events(path, originals).items()}
    return events_of


SHOWN = 25
"""Questions that are listed; the rest is folded away."""
_SECTION = re.compile(r'<section id="(\w+)">.*?</section>', re.DOTALL)
_HEADING, _CONTENTS = re.compile(r"<h3>(.*?)</h3>"), "<!-- contents -->"
FILTERS = ("share", "number", "interval", "percent", "money", "chance", "signed", "metric_name")


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


def write(views: Sequence[View], file: Path) -> None:
    """Raises as ``page``."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, page(views))


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
    environment.globals["tables"] = tables
    environment.filters |= {name: getattr(numbers, name) for name in FILTERS} | {"counted": counted}
    html = environment.get_template("report.html").render(sections=views, marks=MARKS, version=__version__, shown=SHOWN)
    return _SECTION.sub(_with_contents, html)


def _with_contents(section: re.Match[str]) -> str:
    """Headings get names, and a list of them stands where the section begins."""
    titles: list[str] = []

    def with_id(heading: re.Match[str]) -> str:
        titles.append(heading[1])
        return f'<h3 id="{section[1]}-{len(titles)}">{heading[1]}</h3>'

    text = _HEADING.sub(with_id, section[0])
    links = "".join(f'<a href="#{section[1]}-{number}">{title}</a>' for number, title in enumerate(titles, start=1))
    return text.replace(_CONTENTS, f"<nav>{links}</nav>" if len(titles) > 1 else "", 1)


def present(*pictures: Picture | None) -> list[Picture]:
    return [picture for picture in pictures if picture is not None]
