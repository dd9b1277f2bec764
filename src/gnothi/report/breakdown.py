"""Questions split by kind, and in the laboratory by what the model saw and what the corpus holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gnothi.metrics import METRICS, refuses
from gnothi.runs.rows import MERGED, Row
from gnothi.stats.intervals import Interval, mean, mean_interval

FAMILIARITIES = ("often", "seldom", "never")
COVERAGES = ("covered", "absent", "contradicted", "ambiguous")


@dataclass(frozen=True, slots=True)
class Cell:
    """Questions that are alike in what ``of`` says (their kind, familiarity ...): means over those that did not fail."""

    of: Mapping[str, str | None] = field(metadata=MERGED)
    n: int
    failures: int
    em: float | None
    f1: float | None
    accuracy: float | None
    retrieval_rate: float | None
    retrievals: float | None


@dataclass(frozen=True, slots=True)
class LabCell:
    """``abstained``: share of answers that say that there is none; ``right``: share of right decisions."""

    cell: Cell = field(metadata=MERGED)
    abstained: float | None
    right: float | None


@dataclass(frozen=True, slots=True)
class Decisions:
    """How often the decision was the right one, given what the model knows.

    ``right``: share of questions where what was done (trust memory, retrieve, admit not knowing) is what the question's
    ``right_action`` asks for. ``right_retrieval``: the same for retrieving alone, over questions that ask to trust or to
    retrieve. ``cells``: per familiarity and coverage.
    """

    n: int
    right: float | None
    right_interval: Interval | None
    right_retrieval: float | None
    right_retrieval_interval: Interval | None
    by_right_action: tuple[LabCell, ...]
    cells: tuple[LabCell, ...]


def abstained(row: Row) -> bool:
    """Whether the answer says that there is none."""
    return refuses(row.answer or "")


def action(row: Row) -> str:
    """What was done: ``abstain`` where no answer is given, else ``retrieve`` or ``trust``."""
    return "abstain" if abstained(row) else "retrieve" if row.retrieved else "trust"


def by_kind(rows: Sequence[Row]) -> tuple[Cell, ...]:
    """One entry per kind of question, in order of appearance; empty where questions have no kind."""
    kinds = dict.fromkeys(row.kind for row in rows if row.kind)
    return tuple(_cell([row for row in rows if row.kind == kind], kind=kind) for kind in kinds)


def lab(rows: Sequence[Row]) -> Decisions | None:
    """None for questions that do not tell what is right to do."""
    known = [row for row in rows if not row.failed and "right_action" in row.metadata]
    if not known:
        return None
    right = [action(row) == row.metadata["right_action"] for row in known]
    gated = [
        row.retrieved == (row.metadata["right_action"] == "retrieve")
        for row in known
        if row.metadata["right_action"] != "abstain"
    ]
    by_action: dict[str, list[Row]] = {}
    by_situation: dict[tuple[Any, Any], list[Row]] = {}
    for row in known:
        by_action.setdefault(row.metadata["right_action"], []).append(row)
        by_situation.setdefault((row.metadata.get("familiarity"), row.metadata.get("coverage")), []).append(row)
    levels = _ordered(FAMILIARITIES, (familiarity for familiarity, _ in by_situation))
    coverages = _ordered(COVERAGES, (coverage for _, coverage in by_situation))
    return Decisions(
        n=len(known),
        right=mean(right),
        right_interval=mean_interval(right),
        right_retrieval=mean(gated),
        right_retrieval_interval=mean_interval(gated),
        by_right_action=tuple(_lab_cell(own, right_action=action_) for action_, own in by_action.items()),
        cells=tuple(
            _lab_cell(by_situation[level, coverage], familiarity=level, coverage=coverage)
            for level in levels
            for coverage in coverages
            if (level, coverage) in by_situation
        ),
    )


def _cell(rows: Sequence[Row], **of: str | None) -> Cell:
    answered = [row for row in rows if not row.failed]
    return Cell(
        of=of,
        n=len(rows),
        failures=len(rows) - len(answered),
        **{name: mean(row.metrics[name] for row in answered if name in row.metrics) for name in METRICS},
        retrieval_rate=mean(row.retrieved for row in answered),
        retrievals=mean(row.cost["retrievals"] for row in answered),
    )


def _lab_cell(rows: Sequence[Row], **of: str | None) -> LabCell:
    return LabCell(
        _cell(rows, **of),
        abstained=mean(abstained(row) for row in rows),
        right=mean(action(row) == row.metadata["right_action"] for row in rows),
    )


def _ordered(usual: Sequence[str], values: Iterable[Any]) -> list[Any]:
    present = dict.fromkeys(values)
    return [*(name for name in usual if name in present), *(name for name in present if name not in usual)]
