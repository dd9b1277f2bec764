"""As a program, a run whose two workers note themselves in a folder, and then load or answer for ever: to be killed."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from gnothi.runs.runner import outcome
from gnothi.session.plan import Execution
from gnothi.session.workers import workers
from gnothi.types import Question
from tests.runs.scripted import ScriptedMethod


@asynccontextmanager
async def noted(busy: str, folder: Path) -> AsyncIterator[Mapping[str, ScriptedMethod]]:
    (folder / str(os.getpid())).touch()
    if busy == "loading":
        ctypes.PyDLL(None).sleep(600)  # as a library that is being loaded: no other thread runs meanwhile
    yield {"scripted": ScriptedMethod(seconds=600)}


async def main(busy: str, folder: Path) -> None:
    asked = Question("q", "who?", ("gold",))
    async with workers(Execution(), 2, partial(noted, busy, folder), partial(outcome, seed=1), sys.exit) as answer:
        await answer("scripted", asked)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
