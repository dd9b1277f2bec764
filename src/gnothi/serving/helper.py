"""Prompts that a chat's front end sends by itself, for a title or tags: no questions to be looked up."""

from __future__ import annotations

import time

from gnothi import methods
from gnothi.events import record
from gnothi.methods.steps.requirements import follows_instructions
from gnothi.session.asking import Result, ask_method
from gnothi.session.plan import Plan
from gnothi.session.resources import Opened
from gnothi.types import Answer, Decoding, Prompt, Question, Task

PLAIN = Task("helper")
TOKENS = 300


async def reply(opened: Opened, plan: Plan, question: Question) -> Result:
    """What the model says, whole; of a model with a format of its own, its short answer."""
    direct = methods.create("direct", {"model": opened.model}, {})
    if not follows_instructions(opened.model):
        return await ask_method(plan, opened, direct, question)
    started = time.perf_counter()
    with record() as seen:
        said = await opened.model.generate(Prompt(PLAIN, question.text), Decoding(max_tokens=TOKENS))
    answer = Answer(said.text.strip())
    return Result(question, answer, direct.name, opened.model.name, None, None, time.perf_counter() - started, tuple(seen))
