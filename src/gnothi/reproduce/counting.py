"""Calls of a model as a paper counts them, from the recorded events: beside ours, which are requests.

``contexts``: a greedy reply and the samples beside it are one (SeaKR, tables 8 and 9: its code counts so). ``replies``: every
try is one, and what judges are asked is none (KEQA, table 5: they are a smaller model's).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from gnothi.events import ModelCall
from gnothi.methods.steps.prompts import EQUIVALENT, USEFUL
from gnothi.runs.folder import read_events
from gnothi.runs.rows import Row

Counted = Literal["contexts", "replies"]
_JUDGES = (EQUIVALENT.name, USEFUL.name)


def calls(events: Iterable[Mapping[str, Any]], counted: Counted) -> int:
    """Of one question."""
    made = [one for one in events if one.get("event") == ModelCall.tag]
    if counted == "contexts":
        return sum(one["operation"] == "generate" for one in made)
    asked = (one for one in made if one["operation"] in ("generate", "sample") and one["task"] not in _JUDGES)
    return sum(len(one["texts"]) for one in asked)


def calls_of(run: Path, rows: Iterable[Row], counted: Counted) -> list[int]:
    """Of every question of a run that did not fail."""
    keys = [row.key for row in rows if not row.failed]
    recorded = read_events(run, keys)
    return [calls(recorded.get(key, ()), counted) for key in keys]
