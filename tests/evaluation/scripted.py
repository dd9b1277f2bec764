"""A method that needs no model, for tests of what runs methods; run as a program it makes a run (to be killed)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gnothi import events, seeding
from gnothi.evaluation.run_folder import RunFolder
from gnothi.evaluation.runner import run
from gnothi.types import Answer, Passage, Question, ScoredPassage


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


def questions(n: int) -> list[Question]:
    return [Question(f"q{i}", f"What is {i}?", (str(i),), kind="one_hop") for i in range(n)]


def slow_run(out: Path) -> None:
    """60 questions, two methods, each answer takes a moment: long enough to be killed in the middle."""
    methods = [ScriptedMethod("first", seconds=0.02), ScriptedMethod("second", reply=lambda _: "wrong", seconds=0.02)]
    with RunFolder(out, {"seed": 7}) as folder:
        asyncio.run(run({method.name: method for method in methods}, questions(60), folder, seed=7, concurrency=3))


if __name__ == "__main__":
    slow_run(Path(sys.argv[1]))
