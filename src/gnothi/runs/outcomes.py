"""What comes of one question and one method, whatever it raises."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnothi.errors import GnothiError, RunStopped, origin
from gnothi.events import record
from gnothi.own_code import running
from gnothi.runs.rows import Row, answered, failure
from gnothi.seeding import question_scope
from gnothi.types import Answer, Question
from gnothi.waiting import working

Answering = Callable[[Question], Awaitable[Answer]]
"""A method, as far as a run is concerned."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``events`` as they are written; ``trace`` of an error that is not the user's."""

    row: Row
    events: Sequence[Mapping[str, Any]]
    trace: str | None = None


async def outcome(name: str, method: Answering, question: Question, seed: int) -> Outcome:
    """Ask, and record what happens. Raises RunStopped alone: the question is asked when the run goes on."""
    trace = None
    with question_scope(seed, question.id), record() as events, working() as seconds:
        try:
            with running(f"code that method {name!r} uses"):
                answer = await method(question)
            row = answered(name, question, answer, events, seconds())
        except RunStopped:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one question raises must not lose the others
            row = failure(name, question, error, events, seconds())
            trace = None if isinstance(origin(error), GnothiError) else traceback.format_exc()
    return Outcome(row, [event.as_dict() for event in events], trace)
