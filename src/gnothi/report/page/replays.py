"""What gates come to, as one HTML file like a report, and as CSV: for recorded outcomes, and for runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gnothi.calibration.compare import Compared, Gates
from gnothi.calibration.learned_records import Learned
from gnothi.calibration.replay import Replay, Scores
from gnothi.report.document import MethodPoint, Reliability, reliability_of
from gnothi.report.figures import frontier, learned, scores
from gnothi.report.figures.drawing import Picture, Styles
from gnothi.report.page.html import View, present
from gnothi.report.page.html import write as write_views
from gnothi.report.spreadsheet import Line, add, flat, gate_tables, write
from gnothi.report.titles import name_all
from gnothi.stats.intervals import Interval

CURVES = 6
"""Reliability curves that are drawn, of the signals that tell wrong answers best."""


@dataclass(frozen=True, slots=True)
class End:
    """Never, always or oracle (``role``), or another way to answer; the ``oracle`` of never and it; how often the answer was
    ``found``, ``read`` and ``answered``, where that is known."""

    role: str
    name: str
    accuracy: float
    interval: Interval | None
    oracle: float | None = None
    searches: float | None = None
    found: float | None = None
    read: float | None = None
    answered: float | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the page's template shows of a replay."""

    source: str
    gates: Gates
    ends: Sequence[End]
    warnings: Sequence[str]
    reliability: Sequence[Reliability]


def write_page(replays: Sequence[Replay], documents: Sequence[Compared], file: Path) -> None:
    """``documents`` are those of the replays. Raises MissingDependency where jinja2 or matplotlib is not installed."""
    sections = zip(replays, documents, name_all(documents), strict=True)
    views = [_view(f"s{number}", replay, compared, name.title) for number, (replay, compared, name) in enumerate(sections)]
    write_views(views, file)


def write_learned(documents: Sequence[Learned], file: Path) -> None:
    """What learnt gates come to: a section per document. Raises as ``write_page``."""
    views = []
    for number, document in enumerate(documents):
        name = f"s{number}"
        weights = [learned.picture(f"{name}-{place}", step) for place, step in enumerate(document.steps)]
        views.append(View(name, document.dataset, document, {"weights": weights}, template="learned.html"))
    write_views(views, file)


def write_csv(replays: Sequence[Replay], documents: Sequence[Compared], folder: Path) -> list[Path]:
    """The files written, data set and file or run in the first columns of each."""
    tables: dict[str, list[Line]] = {}
    for replay, compared, name in zip(replays, documents, name_all(documents), strict=True):
        add(tables, name, gate_tables(compared.gates))
        add(tables, name, {"ends": map(flat, _ends(compared)), "questions": _questions(replay)})
    return write(tables, folder)


def _view(name: str, replay: Replay, compared: Compared, title: str) -> View:
    gates = compared.gates
    # Colours go by place: the ends and other ways to answer first.
    styles = Styles(dict.fromkeys([*replay.names, *replay.others, *gates.signals]))
    points = [
        MethodPoint(gates.names[role], accuracy, gates.intervals[role], rate)
        for role, accuracy, rate in (("never", gates.never, 0.0), ("always", gates.always, 1.0))
    ]
    curves = [one for signal in replay.signals if (one := reliability_of(signal.name, signal.truth, *_known(signal)))]
    best = sorted(curves, key=lambda one: -(gates.signals[one.method].auroc or 0.0))[:CURVES]
    measured = [_scores(name, signal, gates) for signal in replay.signals]
    return View(
        name=name,
        title=title,
        template="replay.html",
        numbers=Numbers(compared.file, gates, _ends(compared), compared.warnings, curves),
        pictures={
            "gates": present(frontier.picture(name, gates, points, styles)),
            "signals": present(*measured, scores.reliability(name, best, styles)),
        },
    )


def _ends(compared: Compared) -> list[End]:
    """Never, always and oracle, and the other ways to answer."""
    gates = compared.gates
    ends = [
        End("never", gates.names["never"], gates.never, gates.intervals["never"]),
        End("always", gates.names["always"], gates.always, gates.intervals["always"], gates.oracle),
        End("oracle", "the better of both", gates.oracle, gates.intervals["oracle"]),
        *(End("", name, one.accuracy, one.interval, one.oracle, one.searches) for name, one in gates.others.items()),
    ]
    reached = compared.reached
    return [
        replace(end, found=reached[end.name].found, read=reached[end.name].read, answered=reached[end.name].answered)
        if end.name in reached
        else end
        for end in ends
    ]


def _known(signal: Scores) -> tuple[list[float], list[bool]]:
    """Scores, and whether the answers were wrong, where that is known."""
    return signal.values[signal.known].tolist(), signal.wrong[signal.known].tolist()


def _scores(name: str, signal: Scores, gates: Gates) -> Picture | None:
    signal_gate = gates.signals[signal.name]
    thresholds = [signal_gate.replayed.threshold * signal.sign] if signal_gate.replayed else []
    label = signal.name if signal.sign > 0 else f"minus {signal.name}"
    measured = signal_gate.auroc, signal_gate.interval
    return scores.distribution(name, signal.name, label, *_known(signal), f"{signal.truth} was", measured, thresholds)


def _questions(replay: Replay) -> Iterable[Line]:
    """One line per question: quality without and with retrieval, and the scores as they were recorded."""
    for place in range(replay.n):
        recorded = {signal.name: signal.sign * float(signal.values[place]) for signal in replay.signals}
        yield {
            "question": replay.questions[place] if replay.questions else str(place + 1),
            "never": float(replay.never[place]),
            "always": float(replay.always[place]),
            **{name: value if np.isfinite(value) else None for name, value in recorded.items()},
        }
