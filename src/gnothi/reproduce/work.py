"""A recipe carried out: what is lacking is told first, then things are learnt, then every row is run on every data set."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from gnothi.errors import InvalidInput
from gnothi.models.remote.budget import Budget
from gnothi.reproduce import learning
from gnothi.reproduce.estimate import Estimate, estimate
from gnothi.reproduce.learning import Watching
from gnothi.reproduce.needs import Need, needs
from gnothi.reproduce.outcome import Outcome, outcome
from gnothi.reproduce.parts import Job, Part, parts
from gnothi.session.execute import execute
from gnothi.studies.running import claimed_runs, table
from gnothi.studies.variants import PlannedStudy, plan_study


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a job needs, and about what it will take; no estimate where questions are lacking."""

    needs: tuple[Need, ...]
    estimate: Estimate | None
    questions: dict[str, int]

    @property
    def lacking(self) -> list[Need]:
        return [need for need in self.needs if need.lacking]


def outlook(job: Job) -> Outlook:
    """Opens no model and writes nothing. Raises as ``parts`` and ``plan_study``."""
    found = parts(job)
    needed = needs(job, found)
    if any(need.lacking for need in needed):
        return Outlook(tuple(needed), None, {})
    counted = {part.name: len(part.asked().questions) for part in found}
    return Outlook(tuple(needed), estimate(found, counted), counted)


def check(job: Job) -> None:
    """Names and settings, before anything is learnt. Raises UnknownName or InvalidSetting."""
    for part in parts(job):
        plan_study(part.study, part.request, part.only)


def carry_out(job: Job, watching: Watching | None = None, budget: Budget | None = None) -> Outcome:
    """The same call goes on with what is unfinished. Raises InvalidInput where something is lacking, and what learning and
    running raise."""
    watching = watching or Watching()
    if lacking := outlook(job).lacking:
        raise InvalidInput(f"{job.recipe.name}: " + " ".join(_told(need) for need in lacking))
    check(job)
    found = parts(job)
    learning.build(found, watching)
    done = set()
    for part in found:
        for training in part.trainings:
            if (folder := part.learnt(training)) not in done:
                learning.learn(part, training, watching)
                done.add(folder)
    planned = [learning.calibrate(part, plan_study(part.study, part.request, part.only), watching) for part in found]
    watching.step("rows")
    return _answered(job, found, planned, watching, budget)


def _answered(job: Job, found: list[Part], planned: list[PlannedStudy], watching: Watching, budget: Budget | None) -> Outcome:
    """All rows of all data sets at once, so that each model is opened once."""
    with contextlib.ExitStack() as stack:
        runs = [
            stack.enter_context(claimed_runs(plans, part.asked(), None, None, job.execution, part.folder))
            for part, plans in zip(found, planned, strict=True)
        ]
        rows = iter(asyncio.run(execute([one for own in runs for one in own], watching.answering, budget=budget)))
        answers = [[next(rows) for _ in own] for own in runs]
        tables = [table(plans, own, of) for plans, own, of in zip(planned, runs, answers, strict=True)]
    return outcome(job, found, tables, answers)


def _told(need: Need) -> str:
    where = f" from {need.home}" if need.home else ""
    return f"{need.title}: there is no {', '.join(need.lacking)}. Get it{where}: {need.get.rstrip('.')}."
