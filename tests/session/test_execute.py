"""How many processes answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gnothi.session import execute as executing
from gnothi.session.execute import claimed, execute
from gnothi.session.plan import Execution, Request, resolve, with_questions


@pytest.mark.parametrize(("wanted", "questions", "started"), [(40, 2, 2), (2, 3, 2), (40, 1, None)])
async def test_no_more_processes_than_questions(
    wanted: int, questions: int, started: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    @asynccontextmanager
    async def counted(count: int, *_: Any) -> AsyncIterator[Any]:
        counts.append(count)
        raise InterruptedError
        yield

    monkeypatch.setattr(executing, "workers", counted)
    plan = with_questions(resolve(Request(["direct"])), "lab", limit=questions, execution=Execution(workers=wanted))
    with claimed(plan, tmp_path / "run") as run:
        if started is None:
            (rows,) = await execute([run])
            assert len(rows) == 1
        else:
            with pytest.raises(InterruptedError):
                await execute([run])
    assert counts == ([] if started is None else [started])
