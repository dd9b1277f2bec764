"""As a program, a run of the laboratory on a cluster of Ray, which notes every answer that is computed: to be killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from gnothi.runs.runner import outcome
from gnothi.session.execute import claimed
from gnothi.session.plan import Execution, Plan, Request, resolve, with_questions
from gnothi.session.resources import label, opened_methods
from gnothi.session.workers import workers
from gnothi.types import Answer, Question
from tests.runs.scripted import run_one

METHODS = ("direct", "rag")
QUESTIONS = 100
CONCURRENCY = 4


@dataclass(frozen=True)
class Noted:
    method: Any
    name: str
    log: Path

    async def __call__(self, question: Question) -> Answer:
        found: Answer = await self.method(question)
        # Long enough for a lost node to be noticed while there is work left.
        await asyncio.sleep(0.25)
        with self.log.open("a") as file:
            file.write(f"{os.getpid()} {self.name} {question.id}\n")
        return found


@asynccontextmanager
async def open_noted(plans: Sequence[Plan], log: Path) -> AsyncIterator[Mapping[str, Noted]]:
    async with opened_methods(plans) as methods:
        yield {name: Noted(methods[label(0, name)], name, log) for name in METHODS}


def plan() -> Plan:
    return with_questions(resolve(Request(METHODS)), "lab", limit=QUESTIONS, execution=Execution(1, CONCURRENCY, 2))


async def main(out: Path, spec: str, log: Path) -> None:
    found = plan()
    opened = partial(open_noted, [replace(found, question_set=None)], log)
    with claimed(found, out) as one:
        async with workers(Execution(on=spec), 2, opened, partial(outcome, seed=1), lambda text: click.echo(text)) as answer:
            await run_one(answer, METHODS, found.questions.questions, one.folder, CONCURRENCY)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
