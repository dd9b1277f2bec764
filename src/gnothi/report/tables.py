"""A report's numbers as tables: one CSV file each, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.calibration.verdicts import question_scores
from gnothi.report.breakdown import action
from gnothi.report.costs import COUNTS
from gnothi.report.sections import Section, name_all
from gnothi.report.titles import Name
from gnothi.runs.folder import replace_file
from gnothi.runs.rows import Row, group

Line = dict[str, Any]
_WORTH = ("accuracy", "retrieval_rate", "gain", "gap_closed")
QUALITY = ("em", "f1", "accuracy", "retrieval_rate")


def write_tables(documents: Sequence[Mapping[str, Any]], sections: Sequence[Section], folder: Path) -> list[Path]:
    """Every table that has a row, with data set and runs in its first columns. The files written; those of tables without a
    row, left from an earlier report, are removed."""
    tables: dict[str, list[Line]] = {}
    for document, section, name in zip(documents, sections, name_all(sections), strict=True):
        for table, lines in (*numbers(document).items(), ("questions", _questions(section.rows))):
            tables.setdefault(table, []).extend(of(name, lines))
    return write(tables, folder)


def of(name: Name, lines: Iterable[Line]) -> list[Line]:
    """The lines, with what tells them from those of other sections in the first columns."""
    return [{"dataset": name.dataset, "run": name.run, **line} for line in lines]


def write(tables: Mapping[str, Sequence[Line]], folder: Path) -> list[Path]:
    """A file for every table that has a row; those of tables without a row, left from an earlier time, are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.csv" for name, lines in tables.items() if lines]
    for file in written:
        replace_file(file, _csv(tables[file.stem]))
    for name in tables.keys() - {file.stem for file in written}:
        (folder / f"{name}.csv").unlink(missing_ok=True)
    return written


def numbers(document: Mapping[str, Any]) -> dict[str, list[Line]]:
    """A document's numbers as flat rows, by table."""
    return {
        "methods": [_method(method) for method in document["methods"]],
        "settings": [
            {"setting": one["setting"], **dict(zip(_columns(document["runs"]), one["values"], strict=True))}
            for one in document["differences"]
        ],
        "search": list(_search(document["methods"])),
        "side_by_side": [
            {"method": found["method"], "n": found["n"], "wrong": found["wrong"], **_spread(one, "interval")}
            for found in document["signals"]
            for one in found["signals"]
        ],
        **gate_tables(document["gates"]),
        "points": [_spread(point, "interval") for point in (document["gates"] or {"points": ()})["points"]],
        "selective": [_selective(one) for one in document["selective"]],
        "risk_coverage": [{"method": one["method"], **point} for one in document["selective"] for point in one["curve"]],
        "calibration": [_spread(_without(one, "bins"), "interval") for one in document["reliability"]],
        "reliability": [{"method": one["method"], **bin} for one in document["reliability"] for bin in one["bins"]],
        "costs": [_cost(one) for one in document["costs"]],
        "comparisons": [_spread(test, "interval") for test in document["comparisons"]],
        "kinds": [{"method": method["method"], **kind} for method in document["methods"] for kind in method["kinds"]],
        "lab": [
            {"method": method["method"], **cell}
            for method in document["methods"]
            for cell in (method["lab"] or {"cells": ()})["cells"]
        ],
    }


def gate_tables(gates: Mapping[str, Any] | None) -> dict[str, list[Line]]:
    """What gates come to: signals, their combinations, every threshold, rank correlations."""
    return {
        "signals": list(_signals(gates)),
        "combinations": list(_combinations(gates)),
        "frontier": list(_frontier(gates)),
        "correlations": list(_correlations(gates)),
    }


def _columns(runs: Sequence[str]) -> list[str]:
    """A name for each run, numbered where two have the same, or a column of another meaning has it."""
    taken = [*runs, "dataset", "run", "setting"]
    return [f"run {number}: {name}" if taken.count(name) > 1 else name for number, name in enumerate(runs, start=1)]


def _method(method: Mapping[str, Any]) -> Line:
    line: Line = {"method": method["method"], "n": method["n"], "failures": method["failures"]}
    for name in (*QUALITY, *COUNTS, "gate_auroc"):
        line |= {name: method[name], **_bounds(name, method["intervals"][name])}
    gate = method["gate"] or {}
    return line | {"cached_calls": method["cached_calls"]} | {key: gate.get(key) for key in ("signal", "truth", "firing_rate")}


def _search(methods: Iterable[Mapping[str, Any]]) -> Iterable[Line]:
    for method in methods:
        beside, search = method["beside"], method["search"]
        if not beside and not search:
            continue
        line: Line = {"method": method["method"]}
        for role in ("never", "always", "method", "oracle"):
            line |= {
                f"{role}_em": (beside or {"em": {}})["em"].get(role),
                f"{role}_retrieval_rate": (beside or {"retrieval_rate": {}})["retrieval_rate"].get(role),
            }
        for label in ("over_search", "under_search"):
            line |= {f"{label}_{key}": search[label][key] if search else None for key in ("count", "share", "rate")}
        yield line


def _signals(gates: Mapping[str, Any] | None) -> Iterable[Line]:
    for name, signal in (gates or {"signals": {}})["signals"].items():
        chosen = signal["chosen"] or {}
        line: Line = {"signal": name} | {key: signal[key] for key in ("method", "truth", "n", "wrong", "not_measured", "auroc")}
        line |= _bounds("auroc", signal["interval"]) | _ends(gates)
        line |= {f"chosen_{key}": chosen.get(key) for key in ("threshold", *_WORTH)} | _worth(chosen)
        yield line | {f"hindsight_{key}": value for key, value in signal["hindsight"].items()}


def _combinations(gates: Mapping[str, Any] | None) -> Iterable[Line]:
    for name, one in (gates or {"combinations": {}})["combinations"].items():
        line: Line = {"combination": name, "predicts": one["predicts"], "of": ", ".join(one["of"])} | _ends(gates)
        yield line | {f"chosen_{key}": one[key] for key in _WORTH} | _worth(one)


def _ends(gates: Mapping[str, Any] | None) -> Line:
    return {role: (gates or {"names": {}})["names"].get(role) for role in ("never", "always")}


def _worth(chosen: Mapping[str, Any]) -> Line:
    return _bounds("chosen_accuracy", chosen.get("interval")) | _bounds("chosen_gap_closed", chosen.get("gap_closed_interval"))


def _correlations(gates: Mapping[str, Any] | None) -> Iterable[Line]:
    found = (gates or {"correlations": {"of": [], "spearman": []}})["correlations"]
    for name, row in zip(found["of"], found["spearman"], strict=True) if len(found["of"]) > 1 else ():
        yield {"signal": name, **dict(zip(found["of"], row, strict=True))}


def _frontier(gates: Mapping[str, Any] | None) -> Iterable[Line]:
    for name, signal in (gates or {"signals": {}})["signals"].items():
        for point in signal["frontier"]:
            yield {"signal": name, **point}


def _selective(one: Mapping[str, Any]) -> Line:
    line: Line = {key: one[key] for key in ("method", "n", "metric", "risk", "aurc")} | _bounds("aurc", one["aurc_interval"])
    line |= {"best_aurc": one["best_aurc"], "auroc": one["auroc"]} | _bounds("auroc", one["auroc_interval"])
    return line | {f"risk_at_{at['wanted']:g}": at["risk"] for at in one["at"]}


def _cost(one: Mapping[str, Any]) -> Line:
    money = one["money"] or {"parts": {}}
    line: Line = {"method": one["method"], "tokens": one["tokens"]}
    line |= {f"{name}_per_question": value for name, value in one["per_question"].items()}
    line |= {f"{name}_total": value for name, value in one["total"].items()}
    line |= {f"money_{key}": money.get(key) for key in ("total", "per_thousand", "per_right")}
    line |= _bounds("money_per_thousand", money.get("interval"))
    return line | {f"money_for_{key}": value for key, value in money["parts"].items()}


def _questions(rows: Sequence[Row]) -> list[Line]:
    scores = {name: question_scores(found) for name, found in group(rows).items()}
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
            "uncertainty": row.uncertainty,
            "gate_score": scores[row.method].get(row.question_id),
            **{cost: row.cost.get(cost) for cost in (*COUNTS, "cached_calls")},
            "error": row.error and f"{row.error['type']}: {row.error['message']}",
        }
        for row in rows
    ]


# --- cells -----------------------------------------------------------------------------------------------------------


def _bounds(name: str, interval: Sequence[float] | None) -> Line:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _spread(line: Mapping[str, Any], key: str) -> Line:
    """``line`` with the interval under ``key`` as ``low`` and ``high``."""
    low, high = line[key] or (None, None)
    return {**_without(line, key), "low": low, "high": high}


def _without(line: Mapping[str, Any], key: str) -> Line:
    return {name: value for name, value in line.items() if name != key}


def _csv(lines: Sequence[Line]) -> str:
    columns = list(dict.fromkeys(column for line in lines for column in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
