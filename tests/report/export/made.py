"""A run to export: a gated method and one that always searches, a question that failed, another that holds odd letters."""

from __future__ import annotations

from pathlib import Path

from gnothi.runs.folder import RunFolder
from gnothi.runs.runner import here
from gnothi.types import Question
from tests.runs.scripted import ScriptedMethod, questions, run_one

ODD = 'Was ist „Ω\u2028 "q"?\n\ud800'


def reply(question: Question) -> str:
    if question.id == "q3":
        raise ValueError("the model broke")
    return question.answers[0] if question.id != "q2" else "wrong"


async def made(path: Path, n: int = 6) -> Path:
    methods = {"scripted": ScriptedMethod(reply=reply), "rag": ScriptedMethod("rag", reply, gate=False, always=True)}
    asked = [*questions(n), Question("odd/id", ODD, ("Ö", "O"), metadata={"hops": [1, 2]})]
    config = {"dataset.name": "numbers", "model.name": "fake", "method.scripted.threshold": 0.5}
    with RunFolder(path, config) as folder:
        await run_one(here(methods, 0), [*methods], asked, folder)
    return path
