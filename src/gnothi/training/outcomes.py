"""What can be learnt from a run of ``gnothi eval`` over training questions: which methods answered what rightly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal, TypeVar

from gnothi import config, methods
from gnothi.config import Settings
from gnothi.errors import InvalidInput, counted
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, SERVER_SECTIONS
from gnothi.models.identity import Identity, identify
from gnothi.runs.folder import read_config, read_rows
from gnothi.runs.journal import OBJECTS
from gnothi.runs.rows import Row
from gnothi.session.data import refuse_test_run

S = TypeVar("S")
Metric = Literal["em", "accuracy"]
"""What is 1 where an answer is right: it is a gold answer, or it holds one."""


def settings_as(settings: Settings, kind: type[S], name: str) -> S:
    """The settings of what is learnt from a run. Raises UnknownName, InvalidSetting also for one of what answered."""
    others = {MODEL_SECTION, INDEX_SECTION, *SERVER_SECTIONS, *methods.names()}
    settings.check_sections(others, f"{name} asks no model, it learns from the run's answers")
    return config.build(kind, settings.plain(others), name)


def rows_of(run: Path, methods: Sequence[str]) -> list[Row]:
    """The rows of a run. Raises InvalidInput where it holds no answers of one of the methods, or none of them all to the same
    question, InvalidSetting where its questions are the laboratory's for testing."""
    refuse_test_run(run)
    rows = read_rows(run)
    question_ids = [{row.question_id for row in rows if row.method == method} for method in methods]
    if not set.intersection(*question_ids):
        names = ", ".join(sorted({row.method for row in rows})) or "none"
        wanted = ", ".join(methods)
        raise InvalidInput(
            f"{run}: got answers by {names}, expected {wanted} over the same questions. Make a run with "
            f"`gnothi eval TRAINING-QUESTIONS --method {','.join(methods)} --out {run}-all`."
        )
    return rows


def model_of(run: Path) -> dict[str, str]:
    """Name and fingerprint of the run's model, for the file of what is learnt: it tells the mistakes of this model alone. Empty
    where the run does not say."""
    config = read_config(run)
    if (name := str(config.get("model.name", ""))) == "":
        return {}
    return asdict(Identity(name) if f"{OBJECTS}model.name" in config else identify(name))


def rights(rows: Sequence[Row], metric: Metric = "em") -> dict[tuple[str, str], bool]:
    """By method and question, whether the answer was right."""
    return {row.key: row.metrics[metric] == 1 for row in rows if metric in row.metrics}


def overlooked(rows: Sequence[Row], methods: Sequence[str], metric: Metric) -> int:
    """How many answers of these methods hold a gold answer, but are wrong by exact match; 0 where another metric is asked."""
    if metric != "em":
        return 0
    ours = [row.metrics for row in rows if row.method in methods]
    return sum(scores.get("accuracy") == 1 and scores.get("em") != 1 for scores in ours)


def hint(missed: int) -> str:
    """What ``overlooked`` answers mean, for people; empty without any."""
    if not missed:
        return ""
    answers = counted(missed, "answer")
    return f"Exact match calls {answers} wrong that hold a gold answer; the setting metric=accuracy calls them right."
