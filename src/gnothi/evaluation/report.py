"""One HTML file that shows runs: numbers, pictures, and each question with what happened. It loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnothi import __version__
from gnothi.config import as_text
from gnothi.errors import MissingDependency
from gnothi.evaluation import figures
from gnothi.evaluation.breakdown import action
from gnothi.evaluation.gate import Truth, truth
from gnothi.evaluation.rows import Key, Row
from gnothi.evaluation.run_folder import read_config, read_events, read_rows, replace_file
from gnothi.evaluation.summary import group, summarise
from gnothi.evaluation.trace import Step, steps

QUESTIONS = 300
"""Questions shown one by one, over all data sets of a report."""
TRACE_BYTES = 4_000_000
"""Room for traces: a page of a few megabytes still opens on a phone."""


@dataclass(frozen=True, slots=True)
class Section:
    """Rows over the same questions, of one run or of several. ``origin`` tells where each row's events lie."""

    dataset: str
    runs: tuple[Path, ...]
    configs: tuple[Mapping[str, Any], ...]
    rows: tuple[Row, ...]
    origin: Mapping[Key, tuple[Path, Key]]
    expected: int
    summary: Mapping[str, Any]


def load_runs(paths: Sequence[Path]) -> list[Section]:
    """Runs over the same questions come into one section; where two hold a method of the same name, the later one's is named
    after its folder too. Unfinished runs are fine. Raises InvalidInput for a folder that is no run."""
    together: dict[tuple[str, str], list[tuple[Path, dict[str, Any]]]] = {}
    for path in dict.fromkeys(paths):
        config = read_config(path)
        key = str(config.get("dataset.name", path.name)), str(config.get("dataset.fingerprint", path))
        together.setdefault(key, []).append((path, config))
    return [_section(dataset, runs) for (dataset, _), runs in together.items()]


def _section(dataset: str, runs: Sequence[tuple[Path, dict[str, Any]]]) -> Section:
    rows: dict[Key, Row] = {}
    origin: dict[Key, tuple[Path, Key]] = {}
    taken: dict[str, Path] = {}
    expected = 0
    for path, config in runs:
        found = read_rows(path)
        expected += _expected(config, len(found))
        for row in found:
            name = row.method if taken.setdefault(row.method, path) == path else f"{row.method} ({path.name})"
            named = replace(row, method=name)
            rows[named.key] = named
            origin[named.key] = (path, row.key)
    all_rows = tuple(rows.values())
    paths, configs = tuple(path for path, _ in runs), tuple(config for _, config in runs)
    return Section(dataset, paths, configs, all_rows, origin, expected, summarise(all_rows, dataset))


def _expected(config: Mapping[str, Any], found: int) -> int:
    methods, questions = config.get("methods"), config.get("dataset.questions")
    return len(methods) * questions if isinstance(methods, list) and isinstance(questions, int) else found


def write_report(sections: Sequence[Section], file: Path) -> None:
    """Raises MissingDependency where jinja2 or matplotlib is not installed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, render(sections))


def render(sections: Sequence[Section]) -> str:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependency("jinja2", "report", "the HTML report") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"share": _share, "number": _number, "interval": _interval, "p": _p}
    per_section = max(1, QUESTIONS // max(1, len(sections)))
    views = [
        _view(f"s{number}", section, per_section, TRACE_BYTES // max(1, len(sections)))
        for number, section in enumerate(sections)
    ]
    return environment.get_template("report.html").render(sections=views, version=__version__)


# --- one data set --------------------------------------------------------------------------------------------------


def _view(name: str, section: Section, limit: int, room: int) -> dict[str, Any]:
    """What the template shows of a section."""
    by_method = group(section.rows)
    known = truth(by_method)
    questions = _chosen(section.rows, limit)
    return {
        "name": name,
        "dataset": section.dataset,
        "summary": section.summary,
        "missing": max(0, section.expected - len(section.rows)),
        "runs": [
            {"path": path.name, "settings": [(key, as_text(_tuple(value))) for key, value in config.items()]}
            for path, config in zip(section.runs, section.configs, strict=True)
        ],
        "known": known,
        "pictures": _pictures(name, section.summary["methods"], by_method, known),
        "questions": _with_traces(questions, section, room),
        "total": len({row.question_id for row in section.rows}),
    }


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _pictures(
    section: str, methods: Sequence[Mapping[str, Any]], by_method: Mapping[str, Sequence[Row]], known: Truth | None
) -> list[dict[str, str]]:
    shown: list[tuple[str, str, str | None]] = [
        (
            "Quality against retrievals",
            "Further up is better, further left cheaper. Lines: 95 % intervals.",
            figures.quality(section, methods),
        )
    ]
    for method in methods:
        if known and (gate := method["gate"]):
            interval = _interval(gate["interval"])
            shown.append(
                (
                    f"What {method['method']} measures where the model knows and where not",
                    f"AUROC {_share(gate['auroc'])} {interval}: chance that a question of the second kind scores above one of "
                    "the first. The less the two overlap, the better a threshold can do.",
                    figures.distributions(section, method["method"], by_method[method["method"]], known, gate),
                )
            )
    shown.append(
        (
            "Risk against coverage",
            "Were only the most certain answers given, how many of them would be wrong? Exact match; lower is better.",
            figures.risk(section, by_method),
        )
    )
    if known:
        shown.append(
            (
                "Calibration",
                "Gate scores as probabilities that the closed-book answer is wrong (isotonic regression, fitted on the other "
                "folds) against how often it was. Dots on the line are right; large dots hold many questions.",
                figures.calibration(section, by_method, known),
            )
        )
    return [{"title": title, "caption": caption, "svg": svg} for title, caption, svg in shown if svg]


# --- question by question ------------------------------------------------------------------------------------------


def _chosen(rows: Sequence[Row], limit: int) -> dict[str, list[Row]]:
    """The rows of at most ``limit`` questions, in the run's order: failures before disagreements before the rest."""
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(row.question_id, []).append(row)
    ranked = sorted(by_question, key=lambda question: _interest(by_question[question]), reverse=True)
    kept = set(ranked[:limit])
    return {question: found for question, found in by_question.items() if question in kept}


def _interest(rows: Sequence[Row]) -> tuple[bool, bool, bool]:
    scores = {row.metrics.get("em") for row in rows}
    return any(row.failed for row in rows), len(scores) > 1, 0.0 in scores


def _with_traces(questions: Mapping[str, Sequence[Row]], section: Section, room: int) -> list[dict[str, Any]]:
    events = _events(questions, section)
    views = []
    for question, rows in questions.items():
        answers = []
        for row in rows:
            shown: list[Step] | None = steps(events.get(row.key, []))
            size = sum(len(line) for step in shown or () for line in (step.title, *step.lines))
            room -= size
            answers.append({"row": row, "done": action(row) if not row.failed else "", "steps": shown if room > 0 else None})
        first = rows[0]
        views.append(
            {
                "id": question,
                "first": first,
                "answers": answers,
                "failed": any(row.failed for row in rows),
                "wrong": any(row.metrics.get("em") == 0 for row in rows),
                "differ": len({row.metrics.get("em") for row in rows}) > 1,
                "facts": [(key, str(value)) for key, value in first.metadata.items() if isinstance(value, str | int | float)],
            }
        )
    return views


def _events(questions: Mapping[str, Sequence[Row]], section: Section) -> dict[Key, list[dict[str, Any]]]:
    wanted = [row.key for rows in questions.values() for row in rows]
    found: dict[Key, list[dict[str, Any]]] = {}
    for path in section.runs:
        here = {section.origin[key][1]: key for key in wanted if section.origin[key][0] == path}
        found |= {here[original]: events for original, events in read_events(path, here).items()}
    return found


# --- numbers in the page -------------------------------------------------------------------------------------------


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _interval(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f"[{interval[0]:.3f}, {interval[1]:.3f}]"


def _p(value: float) -> str:
    return f"{value:.1e}" if value < 0.001 else f"{value:.3f}"
