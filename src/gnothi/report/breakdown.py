"""Questions split by kind, and in the laboratory by what the model saw and what the corpus holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gnothi.metrics import METRICS, refuses
from gnothi.runs.rows import Row
from gnothi.stats.intervals import mean, mean_interval

FAMILIARITIES = ("often", "seldom", "never")
COVERAGES = ("covered", "absent", "contradicted", "ambiguous")


def abstained(row: Row) -> bool:
    """Whether the answer says that there is none."""
    return refuses(row.answer or "")


def action(row: Row) -> str:
    """What was done: ``abstain`` where no answer is given, else ``retrieve`` or ``trust``."""
    return "abstain" if abstained(row) else "retrieve" if row.retrieved else "trust"


def by_kind(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry per kind of question, in order of appearance; empty where questions have no kind."""
    kinds = dict.fromkeys(row.kind for row in rows if row.kind)
    return [{"kind": kind, **_cell([row for row in rows if row.kind == kind])} for kind in kinds]


def lab(rows: Sequence[Row]) -> dict[str, Any] | None:
    """How often the decision was the right one, given what the model knows; None for questions that do not tell.

    ``right``: share of questions where what was done (trust memory, retrieve, admit not knowing) is what the question's
    ``right_action`` asks for. ``right_retrieval``: the same for retrieving alone, over questions that ask to trust or to
    retrieve. ``cells``: per familiarity and coverage.
    """
    told = [row for row in rows if not row.failed and "right_action" in row.metadata]
    if not told:
        return None
    right = [action(row) == row.metadata["right_action"] for row in told]
    gated = [
        row.retrieved == (row.metadata["right_action"] == "retrieve")
        for row in told
        if row.metadata["right_action"] != "abstain"
    ]
    return {
        "n": len(told),
        "right": mean(right),
        "right_interval": mean_interval(right),
        "right_retrieval": mean(gated),
        "right_retrieval_interval": mean_interval(gated),
        "by_right_action": [
            {"right_action": wanted, **_lab_cell([row for row in told if row.metadata["right_action"] == wanted])}
            for wanted in dict.fromkeys(row.metadata["right_action"] for row in told)
        ],
        "cells": [
            {"familiarity": familiarity, "coverage": coverage, **_lab_cell(cell)}
            for familiarity in _ordered(FAMILIARITIES, (row.metadata.get("familiarity") for row in told))
            for coverage in _ordered(COVERAGES, (row.metadata.get("coverage") for row in told))
            if (
                cell := [
                    row
                    for row in told
                    if (row.metadata.get("familiarity"), row.metadata.get("coverage")) == (familiarity, coverage)
                ]
            )
        ],
    }


def _cell(rows: Sequence[Row]) -> dict[str, Any]:
    answered = [row for row in rows if not row.failed]
    metrics = {name: mean(row.metrics[name] for row in answered if name in row.metrics) for name in METRICS}
    return {
        "n": len(rows),
        "failures": len(rows) - len(answered),
        **metrics,
        "retrieval_rate": mean(row.retrieved for row in answered),
        "retrievals": mean(row.cost["retrievals"] for row in answered),
    }


def _lab_cell(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        **_cell(rows),
        "abstained": mean(abstained(row) for row in rows),
        "right": mean(action(row) == row.metadata["right_action"] for row in rows),
    }


def _ordered(usual: Sequence[str], found: Iterable[Any]) -> list[Any]:
    present = dict.fromkeys(found)
    return [*(name for name in usual if name in present), *(name for name in present if name not in usual)]
