"""A report's questions one by one, each with what happened, and marks to find them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnothi.calibration.ends import never_of
from gnothi.calibration.verdicts import question_scores
from gnothi.report.breakdown import action
from gnothi.report.sections import Section
from gnothi.report.trace import Step, steps
from gnothi.runs.folder import read_events
from gnothi.runs.rows import Key, Row, group

MARKS = {
    "wrong": "wrong answers",
    "right": "right answers",
    "over": "searched without need (over-search)",
    "under": "should have searched (under-search)",
    "searched": "searched",
    "abstained": "said that it does not know",
    "failed": "failed",
}
"""What an answer can be found by."""


def questions(section: Section, limit: int, room: int) -> list[dict[str, Any]]:
    """At most ``limit`` of them, failures and disagreements first to be taken, with about ``room`` characters of traces."""
    chosen = _chosen(section.rows, limit)
    by_method = group(section.rows)
    never = never_of(by_method, section.trusting)
    closed = {row.question_id: row.metrics["em"] >= 1 for row in by_method.get(never or "", ()) if row.metrics}
    numbers = {name: number for number, name in enumerate(by_method)}
    scores = {name: question_scores(rows) for name, rows in by_method.items()}
    events = _events(chosen, section)
    views = []
    for question, rows in chosen.items():
        answers: list[dict[str, Any]] = []
        for row in rows:
            shown: list[Step] | None = steps(events.get(row.key, []))
            room -= sum(len(line) for step in shown or () for line in (step.title, *step.lines))
            marks = _marks(row, closed.get(question), row.method == never)
            answers.append(
                {
                    "row": row,
                    "done": action(row) if not row.failed else "",
                    "score": scores[row.method].get(question),
                    "marks": [(mark, MARKS[mark]) for mark in marks if mark in ("over", "under")],
                    "tokens": [f"{mark}-{numbers[row.method]}" for mark in marks],
                    "steps": shown if room > 0 else None,
                }
            )
        first = rows[0]
        differ = len({row.metrics.get("em") for row in rows}) > 1
        views.append(
            {
                "id": question,
                "first": first,
                "answers": answers,
                "failed": any(row.failed for row in rows),
                "wrong": any(row.metrics.get("em") == 0 for row in rows),
                "differ": differ,
                "marks": [token for answer in answers for token in answer["tokens"]] + (["differ"] if differ else []),
                "facts": [(key, str(value)) for key, value in first.metadata.items() if isinstance(value, str | int | float)],
            }
        )
    return views


def _marks(row: Row, closed_right: bool | None, never: bool) -> list[str]:
    if row.failed:
        return ["failed"]
    holds = {
        "wrong": bool(row.metrics) and row.metrics["em"] < 1,
        "right": bool(row.metrics) and row.metrics["em"] >= 1,
        "over": not never and closed_right is True and row.retrieved,
        "under": not never and closed_right is False and not row.retrieved,
        "searched": row.retrieved,
        "abstained": action(row) == "abstain",
    }
    return [mark for mark, held in holds.items() if held]


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


def _events(questions: Mapping[str, Sequence[Row]], section: Section) -> dict[Key, list[dict[str, Any]]]:
    wanted = [row.key for rows in questions.values() for row in rows]
    found: dict[Key, list[dict[str, Any]]] = {}
    for path in section.runs:
        here = {section.origin[key][1]: key for key in wanted if section.origin[key][0] == path}
        found |= {here[original]: events for original, events in read_events(path, here).items()}
    return found
