"""SeaKR over lab questions through the evaluation runner, counted: what ``gnothi eval lab`` does."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks._shared import say
from gnothi.runs.runner import Outcome, outcome
from gnothi.session.plan import Plan
from gnothi.types import Question

OnAnswer = Callable[[int], None]
"""Receives how many questions are answered; 0 when model and index are open and the first one is about to be asked."""


@dataclass
class LabRun:
    """``steps``, ``fed_rows``, ``samples``: the decode loop's counts when so many questions were answered, one entry each."""

    questions: int
    seconds: float
    cpu_seconds: float
    slots: int
    steps: list[int] = field(default_factory=list)
    fed_rows: list[int] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.questions / self.seconds

    def rows_per_step(self, until: float = 1.0) -> float:
        """Mean rows of a step until that share of the questions is answered."""
        last = max(round(until * len(self.steps)), 1) - 1
        return self.fed_rows[last] / max(self.steps[last], 1)

    def occupancy(self, until: float = 1.0) -> float:
        """Rows that steps advanced, as a share of the rows they had slots for."""
        return self.rows_per_step(until) / self.slots

    @property
    def samples_per_row(self) -> float:
        """How many continuations a row stood for; more than 1 where an engine computes equal ones once."""
        return self.samples[-1] / max(self.fed_rows[-1], 1)


def lab_questions(count: int) -> list[Question]:
    from gnothi.session.data import load_questions

    return load_questions("lab", limit=count)


def lab_plan(method: str, overrides: Sequence[str] = (), model: str = "lab") -> Plan:
    from gnothi.config import read_settings
    from gnothi.session.plan import Request, resolve

    return resolve(Request([method], model, "lab", settings=read_settings(environ=os.environ, overrides=overrides)))


def every(questions: Sequence[Question], count: int) -> list[Question]:
    """``count`` of them, spread evenly, so that all kinds stay in proportion."""
    count = min(count, len(questions))
    return [questions[number * len(questions) // count] for number in range(count)]


def seakr(
    questions: Sequence[Question], concurrency: int, overrides: Sequence[str] = (), on_answer: OnAnswer | None = None
) -> LabRun:
    """A run with a model opened anew, so that nothing is kept of an earlier one. Raises SystemExit when a question fails."""
    return asyncio.run(_seakr(questions, concurrency, overrides, on_answer))


async def _seakr(
    questions: Sequence[Question], concurrency: int, overrides: Sequence[str], on_answer: OnAnswer | None
) -> LabRun:
    from gnothi.models.wrappers import Wrapper
    from gnothi.runs.folder import RunFolder
    from gnothi.runs.rows import Row
    from gnothi.runs.runner import Work, here, run
    from gnothi.session.resources import opened

    plan = lab_plan("seakr", overrides)
    async with opened([plan]) as resources:
        model = resources.model
        assert isinstance(model, Wrapper)
        counted = LabRun(len(questions), 0.0, 0.0, model.statistics["slots"])

        def note(row: Row) -> None:
            if row.error is not None:
                raise SystemExit(f"question {row.question_id} failed: {row.error}")
            counted.steps.append(model.statistics["steps"])
            counted.fed_rows.append(model.statistics["fed_rows"])
            counted.samples.append(model.statistics.get("samples", model.statistics["fed_rows"]))
            if on_answer is not None:
                on_answer(len(counted.steps))

        with tempfile.TemporaryDirectory() as folder, RunFolder(Path(folder) / "run", {}) as kept:
            if on_answer is not None:
                on_answer(0)
            began, cpu = time.perf_counter(), time.process_time()
            answer = here({"seakr": resources.method(plan.methods[0])}, 0)
            await run([Work(answer, ["seakr"], questions, kept, on_row=note)], concurrency=concurrency)
            counted.seconds, counted.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    return counted


def seakr_in_processes(questions: Sequence[Question], concurrency: int, overrides: Sequence[str], count: int) -> float:
    """Seconds of the same run in ``count`` processes, as with `gnothi eval --workers`; opening them is not counted."""
    return asyncio.run(_in_processes(questions, concurrency, overrides, count))


async def _in_processes(questions: Sequence[Question], concurrency: int, overrides: Sequence[str], count: int) -> float:
    from gnothi.runs.folder import RunFolder
    from gnothi.runs.runner import Work, run
    from gnothi.session.plan import Execution
    from gnothi.session.resources import label, opened_methods
    from gnothi.session.workers import workers

    opening = partial(opened_methods, [lab_plan("seakr", overrides)])
    async with workers(Execution(), count, opening, partial(outcome, seed=0), say) as several:

        async def answer(name: str, question: Question) -> Outcome:
            found = await several(label(0, name), question)
            return replace(found, row=replace(found.row, method=name))

        with tempfile.TemporaryDirectory() as folder, RunFolder(Path(folder) / "run", {}) as kept:
            began = time.perf_counter()
            (rows,) = await run([Work(answer, ["seakr"], questions, kept)], concurrency=concurrency)
            seconds = time.perf_counter() - began
    for row in rows:
        if row.error is not None:
            raise SystemExit(f"question {row.question_id} failed: {row.error}")
    return seconds
