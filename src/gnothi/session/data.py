"""Questions by name: the laboratory's, and files of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.session.sources import LAB
from gnothi.types import Question

LAB_QUESTIONS = 500
LAB_TRAINING = "lab-train"


def load_questions(spec: str, format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` questions of a data set or file. Raises UnknownName or InvalidInput."""
    from gnothi import datasets

    return datasets.load(spec, format, limit, named_datasets(limit))


def named_datasets(limit: int | None = None) -> Mapping[str, Callable[[], list[Question]]]:
    """Data sets that need no file. They are made on the spot, so at least ``limit`` questions are."""
    from gnothi.lab import KINDS

    count = max(limit or 0, LAB_QUESTIONS)
    return {
        (f"{name}:{kind}" if kind else name): partial(_lab_questions, name, kind, count)
        for name in (LAB, LAB_TRAINING)
        for kind in (None, *KINDS)
    }


def dataset_summaries() -> dict[str, str]:
    """Names and what they hold, for listings."""
    from gnothi.lab.questions import DEFAULT_MIX, KINDS

    mix = ", ".join(f"{share:.0%} {kind}" for kind, share in DEFAULT_MIX.items())
    kinds = {f"{LAB}:{kind}": f"{LAB_QUESTIONS} questions of the kind {kind}" for kind in KINDS}
    all_kinds = {LAB: f"{LAB_QUESTIONS} questions about the laboratory's world: {mix} (more with --limit)"}
    training = f"questions to learn from, none about a fact that {LAB} asks for; {LAB_TRAINING}:KIND for one kind"
    return all_kinds | kinds | {LAB_TRAINING: training}


def _lab_questions(name: str, kind: Any, count: int) -> list[Question]:
    from gnothi import lab

    made = lab.training_questions if name == LAB_TRAINING else lab.questions
    return made(lab.world(), kind, count)


def refuse_test_questions(dataset: str) -> None:
    """Raise InvalidSetting for the laboratory's test questions, where something is to be learnt."""
    name, _, kind = dataset.partition(":")
    if name == LAB:
        instead = f"{LAB_TRAINING}:{kind}" if kind else LAB_TRAINING
        raise InvalidSetting(
            f"got the data set {dataset!r}, whose questions are for testing; expected training questions. Use "
            f"{instead!r}, which asks for none of their facts."
        )


def refuse_test_run(run: Path) -> None:
    """Raise InvalidSetting for a run over the laboratory's test questions, InvalidInput for a folder that is no run."""
    from gnothi.runs.journal import read_config

    try:
        refuse_test_questions(str(read_config(run).get("dataset.name", "")))
    except InvalidSetting as error:
        raise InvalidSetting(f"{run}: {error}") from None
