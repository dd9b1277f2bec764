"""A recipe carried out: what is lacking is reported first, then things are learnt, then every row is run on every data set."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from gnothi.errors import InvalidInput
from gnothi.methods.planned import name_of
from gnothi.models.remote.budget import Budget
from gnothi.reproduce import learning
from gnothi.reproduce.ablation import Table, document
from gnothi.reproduce.estimate import Estimate, estimate
from gnothi.reproduce.needs import Need, needs
from gnothi.reproduce.outcome import Outcome, outcome
from gnothi.reproduce.parts import Job, Part, parts
from gnothi.reproduce.variants import PlannedStudy, plan_study
from gnothi.runs.rows import Row
from gnothi.session.execute import Run, claimed, execute
from gnothi.session.plan import QuestionSet, with_questions
from gnothi.session.watch import SILENT, Watch


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a job needs, and about what it will take; ``questions`` are counted where they are there."""

    needs: tuple[Need, ...]
    estimate: Estimate | None
    questions: dict[str, int]

    @property
    def lacking(self) -> list[Need]:
        return [need for need in self.needs if need.lacking]

    @property
    def gigabytes(self) -> float:
        """To be downloaded."""
        return sum(need.gigabytes for need in self.needs if not need.here)

    @property
    def disk(self) -> float:
        """What all of it takes in the end."""
        return sum(need.gigabytes + need.disk for need in self.needs)


def outlook(job: Job) -> Outlook:
    """Without a folder of data of all that it needs, as if nothing was there. Opens no model and writes nothing. Raises as
    ``parts`` and ``plan_study``."""
    anywhere = job.data is None and not job.rehearse and bool(job.recipe.data)
    job_parts = parts(replace(job, data=Path("FOLDER")) if anywhere else job)
    planned = _planned(job, job_parts)
    needed = tuple(needs(job, planned, job_parts))
    if anywhere:
        needed = tuple(replace(one, lacking=(), here=False) for one in needed if one.home)
    elif not any(need.lacking for need in needed):
        counted = {part.name: len(part.sampled_questions().questions) for part in job_parts}
        return Outlook(needed, estimate(job_parts, planned, counted), counted)
    return Outlook(needed, estimate(job_parts, planned, None) if job.recipe.data and not job.rehearse else None, {})


def check(job: Job) -> list[PlannedStudy]:
    """Names and settings, before anything is learnt. Raises UnknownName or InvalidSetting."""
    return [*_planned(job, parts(job)).values()]


def _planned(job: Job, job_parts: list[Part]) -> dict[str, PlannedStudy]:
    later = {label for label, row in job.recipe.rows.items() if row.calibrate}
    return {part.name: plan_study(part.study, part.request, part.only, job.calibrations, later) for part in job_parts}


def carry_out(job: Job, watch: Watch = SILENT, budget: Budget | None = None) -> Outcome:
    """The paper's figures beside ours, of a recipe with the paper's data sets. As ``table_of``."""
    return outcome(job, *_run(job, watch, budget))


def table_of(job: Job, watch: Watch = SILENT, budget: Budget | None = None) -> Table:
    """The table of a recipe without data sets of its own. The same call goes on with what is unfinished. Raises InvalidInput
    where something is lacking, and what learning and running raise."""
    (table,) = _run(job, watch, budget)[1]
    return table


def _run(job: Job, watch: Watch, budget: Budget | None) -> tuple[list[Part], list[Table], list[list[list[Row]]]]:
    job_parts = parts(job)
    plans = _planned(job, job_parts)
    if lacking := [need for need in needs(job, plans, job_parts) if need.lacking]:
        raise InvalidInput(f"{job.recipe.name}: " + " ".join(_instruction(need) for need in lacking))
    planned, questions = [*plans.values()], [part.sampled_questions() for part in job_parts]
    for line in dict.fromkeys(message for one in planned for plan in one.plans.values() for message in plan.notes):
        watch.info(line)
    if job.recipe.data:
        learning.build(job_parts, watch)
        done = set()
        for part in job_parts:
            for training in part.trainings:
                if (folder := part.learnt(training)) not in done:
                    learning.learn(part, training, watch)
                    done.add(folder)
        planned = [learning.calibrate(part, one, watch) for part, one in zip(job_parts, check(job), strict=True)]
        if job.recipe.pairs is not None:
            questions = [learning.pairs(part, one, watch, budget) for part, one in zip(job_parts, questions, strict=True)]
            planned = [learning.judging(one, own) for one, own in zip(planned, questions, strict=True)]
        watch.info("step: rows")
    return job_parts, *_answered(job_parts, planned, questions, watch, budget)


def _answered(
    job_parts: list[Part], planned: list[PlannedStudy], questions_of: list[QuestionSet], watch: Watch, budget: Budget | None
) -> tuple[list[Table], list[list[list[Row]]]]:
    """All rows of all data sets at once, so that each model is opened once. What does not fit the folders is refused before
    the first question."""
    with contextlib.ExitStack() as stack:
        runs = [
            [
                stack.enter_context(
                    claimed(
                        with_questions(one.plans[row.label], questions, execution=part.job.execution),
                        part.folder / row.folder,
                        row.label,
                        {"study": one.study.name, "label": row.label, "place": place},
                    )
                )
                for place, row in enumerate(one.study.variants, start=1)
                if row.label in one.plans
            ]
            for part, one, questions in zip(job_parts, planned, questions_of, strict=True)
        ]
        rows = iter(asyncio.run(execute([one for own in runs for one in own], watch, budget=budget)))
        answers = [[next(rows) for _ in own] for own in runs]
        return [_table(*one) for one in zip(planned, runs, answers, strict=True)], answers


def _table(planned: PlannedStudy, runs: list[Run], answers: list[list[Row]]) -> Table:
    rows = {run.label: own for run, own in zip(runs, answers, strict=True)}
    summaries = {run.label: run.summarise(rows[run.label]) for run in runs}
    folders, plan = {run.label: run.folder.path for run in runs}, runs[0].plan
    model = name_of(plan.sources.model)
    return document(planned.study, model, plan.questions.dataset, rows, summaries, folders, planned.left_out)


def _instruction(need: Need) -> str:
    where = f" from {need.home}" if need.home else ""
    return f"{need.title}: there is no {', '.join(need.lacking)}. Get it{where}: {need.get.rstrip('.')}."
