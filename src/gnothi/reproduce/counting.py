"""Calls and tokens of a model as a paper counts them, from the recorded events: beside ours, which are of all requests.

``contexts``: a greedy reply and the samples beside it are one (SeaKR, tables 8 and 9: its code counts so). ``replies``: every
try is one, and what judges are asked is none, nor are their tokens counted (KEQA, table 5: they are a smaller model's).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from gnothi.events import ModelCall
from gnothi.methods.steps.prompts import EQUIVALENT, USEFUL
from gnothi.runs.folder import read_events
from gnothi.runs.rows import Row

Unit = Literal["contexts", "replies"]
_JUDGES = (EQUIVALENT.name, USEFUL.name)


def calls(events: Iterable[Mapping[str, Any]], unit: Unit) -> int:
    """Of one question."""
    model_calls = [one for one in events if one.get("event") == ModelCall.tag]
    if unit == "contexts":
        return sum(one["operation"] == "generate" for one in model_calls)
    return sum(
        len(one["texts"]) for one in model_calls if one["operation"] in ("generate", "sample") and not _judged(one, unit)
    )


def tokens(events: Iterable[Mapping[str, Any]], unit: Unit) -> int:
    """Read and written for one question."""
    model_calls = (one for one in events if one.get("event") == ModelCall.tag and not _judged(one, unit))
    return sum(one["prompt_tokens"] + one["generated_tokens"] for one in model_calls)


def _judged(call: Mapping[str, Any], unit: Unit) -> bool:
    return unit == "replies" and call["task"] in _JUDGES


AS_THE_PAPER = {"paper_calls": calls, "paper_tokens": tokens}
"""By measure."""


def counts_of(run: Path, rows: Iterable[Row], measure: str, unit: Unit) -> list[int]:
    """Of every question of a run that did not fail."""
    keys = [row.key for row in rows if not row.failed]
    recorded = read_events(run, keys)
    return [AS_THE_PAPER[measure](recorded.get(key, ()), unit) for key in keys]
