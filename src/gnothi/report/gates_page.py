"""What gates come to, as one HTML file like a report, and as CSV: for recorded outcomes, and for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.replay import Replay
from gnothi.report.document import reliability_of
from gnothi.report.figures import figures
from gnothi.report.figures.drawing import Picture, drawn
from gnothi.report.page import page
from gnothi.report.tables import Line, gate_tables, of, write
from gnothi.report.titles import name_all
from gnothi.runs.folder import replace_file

Document = Mapping[str, Any]
CURVES = 6
"""Reliability curves that are drawn, of the signals that tell wrong answers best."""


def write_page(replays: Sequence[Replay], documents: Sequence[Document], file: Path) -> None:
    """``documents`` are those of ``gates.document``. Raises MissingDependency where jinja2 or matplotlib is not installed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sections = zip(replays, documents, name_all(documents), strict=True)
    views = [_view(f"s{number}", replay, found, name.title) for number, (replay, found, name) in enumerate(sections)]
    replace_file(file, page(views))


def write_csv(replays: Sequence[Replay], documents: Sequence[Document], folder: Path) -> list[Path]:
    """The files written, data set and file or run in the first columns of each."""
    tables: dict[str, list[Line]] = {}
    for replay, found, name in zip(replays, documents, name_all(documents), strict=True):
        numbers = gate_tables(found)
        numbers |= {"ends": [_flat(one) for one in _ends(found)], "questions": _questions(replay)}
        for table, lines in numbers.items():
            tables.setdefault(table, []).extend(of(name, lines))
    return write(tables, folder)


def _view(name: str, replay: Replay, found: Document, title: str) -> dict[str, Any]:
    """What the template shows of a replay."""
    gates = {**found, "points": _points(found)}
    reliability = _reliability(replay)
    best = sorted(reliability, key=lambda one: -(found["signals"][one["method"]]["auroc"] or 0.0))[:CURVES]
    numbers = {
        "gates": gates,
        "ends": _ends(found),
        "warnings": found["warnings"],
        "reliability": reliability,
        # Colours go by place: the ends and other ways to answer first.
        "methods": [{"method": one} for one in dict.fromkeys([*replay.names, *replay.others, *found["signals"]])],
    }
    distributions = [_distribution(name, replay, found, place) for place in range(len(replay.signals))]
    return {
        "name": name,
        "replay": True,
        "title": title,
        "source": found["file"],
        "numbers": numbers,
        "runs": [],
        "pictures": {
            "gates": drawn(figures.frontier(name, numbers)),
            "signals": drawn(*distributions, figures.calibration(name, {**numbers, "reliability": best})),
        },
    }


def _points(found: Document) -> list[dict[str, Any]]:
    return [
        {
            "method": found["names"][role],
            "accuracy": found[role],
            "interval": found["intervals"][role],
            "retrieval_rate": rate,
        }
        for role, rate in (("never", 0.0), ("always", 1.0))
    ]


def _ends(found: Document) -> list[dict[str, Any]]:
    """Never, always and oracle, and the other ways to answer."""
    rows = [
        {
            "role": role,
            "name": found["names"].get(role, "the better of both"),
            "accuracy": found[role],
            "interval": found["intervals"][role],
            "oracle": found["oracle"] if role == "always" else None,
            "searches": None,
        }
        for role in ("never", "always", "oracle")
    ]
    return [*rows, *({"role": "", "name": name, **other} for name, other in found["others"].items())]


def _flat(one: Mapping[str, Any]) -> Line:
    low, high = one["interval"] or (None, None)
    return {**{key: value for key, value in one.items() if key != "interval"}, "low": low, "high": high}


def _reliability(replay: Replay) -> list[dict[str, Any]]:
    found = []
    for signal in replay.signals:
        one = reliability_of(signal.values[signal.known].tolist(), signal.wrong[signal.known].tolist())
        if one is not None:
            found.append({"method": signal.name, "truth": signal.truth, **one})
    return found


def _distribution(name: str, replay: Replay, found: Document, place: int) -> Picture | None:
    signal = replay.signals[place]
    numbers = found["signals"][signal.name]
    replayed = [numbers["replayed"]["threshold"] * signal.sign] if "replayed" in numbers else []
    scores, wrong = signal.values[signal.known].tolist(), signal.wrong[signal.known].tolist()
    label = signal.name if signal.sign > 0 else f"minus {signal.name}"
    return figures.distribution(name, signal.name, label, scores, wrong, f"{signal.truth} was", numbers, replayed)


def _questions(replay: Replay) -> list[Line]:
    """One line per question: quality without and with retrieval, and the scores as they were recorded."""
    names = replay.questions or tuple(str(number) for number in range(1, replay.n + 1))
    columns = {
        signal.name: np.where(np.isfinite(signal.values), signal.sign * signal.values, np.nan) for signal in replay.signals
    }
    return [
        {
            "question": question,
            "never": float(replay.never[place]),
            "always": float(replay.always[place]),
            **{name: None if np.isnan(values[place]) else float(values[place]) for name, values in columns.items()},
        }
        for place, question in enumerate(names)
    ]
