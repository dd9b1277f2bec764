"""Rows made by hand for tests of what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gnothi.metrics import score
from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import Row

FREE = dict.fromkeys(("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "seconds"), 0)
"""A cost, as every row of an answered question has one."""


def row(
    method: str,
    number: int,
    right: bool = True,
    retrieved: bool = False,
    uncertainty: float | None = None,
    threshold: float | None = 0.5,
    failed: bool = False,
    answer: str | None = None,
    **values: Any,
) -> Row:
    """Question ``number`` with gold answer "gold"; with an uncertainty, a gate's decision."""
    given = answer if answer is not None else "gold" if right else "something else"
    decision = {
        "kind": "retrieve",
        "signal": "gram",
        "score": uncertainty,
        "threshold": threshold,
        "verdict": "retrieve" if retrieved else "trust",
        "subject": "",
    }
    return Row(
        method=method,
        question_id=f"q{number}",
        question=f"Question {number}?",
        answer=None if failed else given,
        gold=("gold",),
        metrics={} if failed else score(given, ("gold",)),
        cost={"retrievals": int(retrieved), "model_calls": 2, "prompt_tokens": 100, "generated_tokens": 10, "seconds": 0.5},
        uncertainty=uncertainty,
        decisions=(decision,) if uncertainty is not None else (),
        error={"type": "RuntimeError", "message": "broken"} if failed else None,
        **values,
    )


def run_of(folder: Path, rows: Iterable[Row]) -> Path:
    """A finished run that holds these rows, without settings or events."""
    made = list(rows)
    with RunFolder(folder, {}) as opened:
        for one in made:
            opened.append(one, [])
        opened.finish([one.key for one in made])
    return folder
