"""Questions by name: the laboratory's, and files of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gnothi import datasets
from gnothi.errors import InvalidSetting
from gnothi.lab import named
from gnothi.types import Question

LAB = named.NAME
LAB_QUESTIONS = named.COUNT
LAB_TRAINING = named.TRAINING_NAME


def load_questions(spec: str, format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` questions of a data set or file. Raises UnknownName or InvalidInput."""
    return datasets.load(spec, format, limit)


def load_several(specs: Sequence[str], format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` of each; of several, an id says which one it is from. Raises as ``load_questions``."""
    if len(specs) == 1:
        return load_questions(specs[0], format, limit)
    return [replace(one, id=f"{spec}: {one.id}") for spec in specs for one in load_questions(spec, format, limit)]


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
        raise InvalidSetting(f"{run}: {error.message}") from None
