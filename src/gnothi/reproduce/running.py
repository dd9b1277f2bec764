"""A study carried out: every variant's run in a folder of its own, and the table that they come to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gnothi.methods.planned import name_of
from gnothi.reproduce.ablation import Table, document
from gnothi.reproduce.variants import PlannedStudy
from gnothi.runs.rows import Row
from gnothi.session.execute import Run, claimed
from gnothi.session.plan import Asked, Execution, with_questions


@contextlib.contextmanager
def claimed_runs(planned: PlannedStudy, asked: Asked, execution: Execution, out: Path) -> Iterator[list[Run]]:
    """The runs of all variants, their folders open for writing: what does not fit is refused before the first question."""
    study = planned.study
    places = {variant.label: place for place, variant in enumerate(study.variants, start=1)}
    with contextlib.ExitStack() as stack:
        runs = []
        for label, plan in planned.plans.items():
            plan = with_questions(plan, asked, execution=execution)
            told = {"study": study.name, "label": label, "place": places[label]}
            runs.append(stack.enter_context(claimed(plan, out / study.variant(label).folder, label, told)))
        yield runs


def table(planned: PlannedStudy, runs: Sequence[Run], rows: Sequence[list[Row]]) -> Table:
    """The study's table, from the rows of each run."""
    by_label: Mapping[str, list[Row]] = {run.label: own for run, own in zip(runs, rows, strict=True)}
    summaries = {run.label: run.summarise(by_label[run.label]) for run in runs}
    folders = {run.label: run.folder.path for run in runs}
    first = runs[0].plan
    model = name_of(first.sources.model)
    return document(planned.study, model, first.questions.dataset, by_label, summaries, folders, planned.left_out)
