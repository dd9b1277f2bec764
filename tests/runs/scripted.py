"""A method that needs no model, for tests of what runs methods; run as a program it makes a run that stops
after each row, to be killed there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from gnothi import events, seeding
from gnothi.errors import BudgetSpent, UsageError
from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import Row
from gnothi.runs.runner import Answers, Work, here, run
from gnothi.types import Answer, Passage, Question, ScoredPassage
from tests.stopping import stops_after


@dataclass(frozen=True)
class ScriptedMethod:
    """Answers ``reply(question)``; uncertainty, the retrieval decision and the cost follow from the question's seed."""

    name: str = "scripted"
    reply: Callable[[Question], str] = lambda question: question.answers[0]
    seconds: float = 0.0
    gate: bool = True
    always: bool = False

    async def __call__(self, question: Question) -> Answer:
        await asyncio.sleep(self.seconds)
        uncertainty = seeding.derive("uncertainty") % 1000 / 1000
        events.emit(events.ModelCall("fake", "generate", "answer", 10, 5, 0.01, ("text",)))
        retrieves = self.always or (self.gate and uncertainty > 0.5)
        if self.gate:
            events.emit(events.Decided("retrieve", "gram", uncertainty, 0.5, "retrieve" if retrieves else "trust", "a draft"))
        if retrieves:
            events.emit(events.Searched(question.text, (ScoredPassage(Passage("p1", "text", "Title"), 1.0),), 0.01))
        text = self.reply(question)
        return Answer(text, rationale="because", evidence=(Passage("p1", "text"),), uncertainty=uncertainty)


async def run_one(
    answer: Answers,
    methods: Sequence[str],
    asked: Sequence[Question],
    folder: RunFolder,
    concurrency: int = 256,
    **options: Any,
) -> list[Row]:
    (rows,) = await run([Work(answer, methods, asked, folder, **options)], concurrency=concurrency)
    return rows


def questions(n: int) -> list[Question]:
    return [Question(f"q{i}", f"What is {i}?", (str(i),), kind="one_hop") for i in range(n)]


class Refused(UsageError):
    """An error whose constructor takes something else than a message."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"{name} was refused {number} times")


def reply(question: Question) -> str:
    if "raise" in question.text:
        raise Refused(question.id, 3)
    if "die" in question.text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "stop" in question.text:
        raise BudgetSpent("nothing is left.")
    return f"{question.answers[0]} by {os.getpid()}" if "who" in question.text else question.answers[0]


@asynccontextmanager
async def open_scripted(seconds: float = 0.0) -> AsyncIterator[Mapping[str, ScriptedMethod]]:
    """For workers, which open their methods by a function that they can import."""
    yield {"scripted": ScriptedMethod(reply=reply, seconds=seconds), "other": ScriptedMethod("other", always=True)}


@asynccontextmanager
async def open_once_lost(log: str) -> AsyncIterator[Mapping[str, ScriptedMethod]]:
    """Notes each answer by its process; the first process that is to answer q30 ends there."""

    def noted(question: Question) -> str:
        with open(log, "a") as file:
            file.write(f"{os.getpid()} {question.id}\n")
        if question.id == "q30":
            try:
                os.close(os.open(f"{log}.lost", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return "30"
            os.kill(os.getpid(), signal.SIGKILL)
        return question.answers[0]

    yield {name: ScriptedMethod(name, noted, seconds=0.01) for name in ("scripted", "other")}


@asynccontextmanager
async def open_nothing(error: str) -> AsyncIterator[Mapping[str, ScriptedMethod]]:
    raise Refused(error, 1) if error else RuntimeError("a bug")
    yield {}


def open_and_exit() -> NoReturn:
    os._exit(7)


@asynccontextmanager
async def open_for_ever(begun: str) -> AsyncIterator[Mapping[str, ScriptedMethod]]:
    """As a large model: what loads it hears nobody meanwhile."""
    os.close(os.open(begun, os.O_CREAT | os.O_WRONLY))
    time.sleep(600)  # noqa: ASYNC251
    yield {}


def long_run(out: Path) -> None:
    """60 questions, two methods: long enough to be killed in the middle."""
    methods = [ScriptedMethod("first", seconds=0.001), ScriptedMethod("second", reply=lambda _: "wrong", seconds=0.001)]
    with RunFolder(out, {"seed": 7}) as folder:
        by_name = {method.name: method for method in methods}
        asyncio.run(run_one(here(by_name, 7), list(by_name), questions(60), folder, concurrency=3))


if __name__ == "__main__":
    stops_after(RunFolder, "append")
    long_run(Path(sys.argv[1]))
