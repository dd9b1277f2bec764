"""A report's numbers as flat records: one CSV file each, for spreadsheets and data frames. Everything that is written as CSV is
written here.

They do not come from ``table_form.Table``. That is for reading: numbers rounded to what they support, titles in words, an
interval within its cell. A record is for computing: full precision, the names that ``--json`` has, both ends of an interval in
columns of their own, and every threshold and question, of which a page draws a picture.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.calibration.compare import Gates
from gnothi.calibration.verdicts import question_scores
from gnothi.report.breakdown import action
from gnothi.report.costs import COUNTS, Costs
from gnothi.report.document import Document
from gnothi.report.sections import Section, name_all
from gnothi.report.summary import Method
from gnothi.report.titles import Name
from gnothi.runs.folder import replace_file
from gnothi.runs.rows import Row, group, jsonable

Line = dict[str, Any]
QUALITY = ("em", "f1", "accuracy", "retrieval_rate")


def write_tables(documents: Sequence[Document], sections: Sequence[Section], folder: Path) -> list[Path]:
    """Every table that has a row, with data set and runs in its first columns. The files written; those of tables without a
    row, left from an earlier report, are removed."""
    tables: dict[str, list[Line]] = {}
    for document, section, name in zip(documents, sections, name_all(sections), strict=True):
        add(tables, name, {**_numbers(document), "questions": questions(section.rows)})
    return write(tables, folder)


def add(tables: dict[str, list[Line]], name: Name, records: Mapping[str, Iterable[Line]]) -> None:
    """Put a section's lines into the ``tables``; the first columns tell them from those of other sections."""
    for table, lines in records.items():
        tables.setdefault(table, []).extend({"dataset": name.dataset, "run": name.run, **line} for line in lines)


def write(tables: Mapping[str, Sequence[Line]], folder: Path) -> list[Path]:
    """A file for every table that has a row; those of tables without a row, left from an earlier time, are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in tables.items():
        if lines:
            write_csv(lines, folder / f"{name}.csv")
        else:
            (folder / f"{name}.csv").unlink(missing_ok=True)
    return [folder / f"{name}.csv" for name, lines in tables.items() if lines]


def write_csv(lines: Sequence[Line], file: Path) -> None:
    columns = list(dict.fromkeys(column for line in lines for column in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: _harmless(value) for column, value in line.items()} for line in lines)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text.getvalue())


def _harmless(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, as a text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def flat(record: object, of: Mapping[str, str] | None = None, **first: Any) -> Line:
    """A record as a line: what it holds inside gets a prefix, intervals become ``_low`` and ``_high``, lists are left out.

    ``of`` says by prefix of what a plain ``interval`` is. Columns named in ``first`` come first."""
    return first | _flat(jsonable(record), of or {}, "")


def _flat(record: Mapping[str, Any], of: Mapping[str, str], prefix: str) -> Line:
    line: Line = {}
    for key, value in record.items():
        if key == "interval" or key.endswith("_interval"):
            stem = of.get(prefix, "") if key == "interval" else key.removesuffix("interval")
            line |= bounds(f"{prefix}{stem}", value)
        elif isinstance(value, Mapping):
            line |= _flat(value, of, f"{prefix}{key}_")
        elif not isinstance(value, list) and not (value is None and f"{prefix}{key}_" in of):
            line[f"{prefix}{key}"] = value
    return line


def bounds(name: str, interval: Sequence[float] | None) -> Line:
    low, high = interval or (None, None)
    return {f"{name}low": low, f"{name}high": high}


def gate_tables(gates: Gates | None) -> dict[str, list[Line]]:
    """What gates come to: signals, every threshold, rank correlations."""
    if gates is None:
        return {"signals": [], "frontier": [], "correlations": []}
    stems = {"": "auroc_", "chosen_": "accuracy_", "replayed_": "accuracy_"}
    of = gates.correlations.of
    return {
        "signals": [flat(one, stems, signal=name, **gates.names) for name, one in gates.signals.items()],
        "frontier": [flat(point, signal=name) for name, one in gates.signals.items() for point in one.frontier],
        "correlations": [
            {"signal": name, **dict(zip(of, row, strict=True))}
            for name, row in zip(of, gates.correlations.spearman, strict=True)
            if len(of) > 1
        ],
    }


def _numbers(document: Document) -> dict[str, list[Line]]:
    """A document's numbers as flat rows, by table."""
    methods = document.methods
    columns = _columns(document.runs)
    return {
        "methods": [_method(method) for method in methods],
        "settings": [{"setting": one.setting, **dict(zip(columns, one.values, strict=True))} for one in document.differences],
        "search": [_search(method) for method in methods if method.beside or method.search],
        "side_by_side": [
            flat(one, method=panel.method, n=panel.n, wrong=panel.wrong) for panel in document.signals for one in panel.signals
        ],
        **gate_tables(document.gates.gates if document.gates else None),
        "points": [flat(point) for point in (document.gates.points if document.gates else ())],
        "selective": [flat(one) | {f"risk_at_{at.wanted:g}": at.risk for at in one.at} for one in document.selective],
        "risk_coverage": [flat(point, method=one.method) for one in document.selective for point in one.curve],
        "calibration": [flat(one) for one in document.reliability],
        "reliability": [flat(bin, method=one.method) for one in document.reliability for bin in one.bins],
        "costs": [_cost(one) for one in document.costs],
        "comparisons": [flat(test) for test in document.comparisons],
        "reached": [flat(one.reached, method=one.method) for one in methods if one.reached],
        "kinds": [flat(kind, method=method.method) for method in methods for kind in method.kinds],
        "lab": [flat(cell, method=method.method) for method in methods if method.lab for cell in method.lab.cells],
    }


def _columns(runs: Sequence[str]) -> list[str]:
    """A name for each run, numbered where two have the same, or a column of another meaning has it."""
    own = [*runs, "dataset", "run", "setting"]
    return [f"run {number}: {name}" if own.count(name) > 1 else name for number, name in enumerate(runs, start=1)]


def _method(method: Method) -> Line:
    line: Line = {"method": method.method, "n": method.n, "failures": method.failures}
    for name in (*QUALITY, *COUNTS, "gate_auroc"):
        line |= {name: getattr(method, name), **bounds(f"{name}_", method.intervals[name])}
    gate = {key: getattr(method.gate, key, None) for key in ("signal", "truth", "firing_rate")}
    return line | {"cached_calls": method.cached_calls, "thought_tokens": method.thought_tokens} | gate


def _search(method: Method) -> Line:
    line: Line = {"method": method.method}
    for role in ("never", "always", "method", "oracle"):
        for name in ("em", "retrieval_rate"):
            line[f"{role}_{name}"] = getattr(method.beside, name).get(role) if method.beside else None
    for label in ("over_search", "under_search"):
        for key in ("count", "share", "rate"):
            line[f"{label}_{key}"] = getattr(getattr(method.search, label), key) if method.search else None
    return line


def _cost(one: Costs) -> Line:
    line: Line = {"method": one.method, "tokens": one.tokens}
    line |= {f"{name}_per_question": value for name, value in one.per_question.items()}
    line |= {f"{name}_total": value for name, value in one.total.items()}
    if one.money is None:
        return line
    paid = {f"money_for_{key}": value for key, value in one.money.parts.items()}
    money = {key: value for key, value in jsonable(one.money).items() if key != "parts"}
    return line | flat({"money": money}, {"money_": "per_thousand_"}) | paid


def questions(rows: Sequence[Row]) -> list[Line]:
    """A line per method and question."""
    scores = {name: question_scores(own) for name, own in group(rows).items()}
    return [
        {
            "method": row.method,
            "question_id": row.question_id,
            "question": row.question,
            "kind": row.kind,
            "gold": " / ".join(row.gold),
            "answer": row.answer,
            **{metric: row.metrics.get(metric) for metric in ("em", "f1", "accuracy")},
            "done": None if row.failed else action(row),
            **{key: row.reached.get(key) for key in ("found", "read", "stage")},
            "uncertainty": row.uncertainty,
            "gate_score": scores[row.method].get(row.question_id),
            **{cost: row.cost.get(cost) for cost in (*COUNTS, "cached_calls", "thought_tokens")},
            "error": row.error and f"{row.error['type']}: {row.error['message']}",
        }
        for row in rows
    ]
