"""A run over questions whose server is killed: it waits, or fails those questions and asks them again; its rows are right."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.runs.folder import read_rows
from tests.retrieval.servers.postgres.engine import NEEDED, Engine
from tests.retrieval.servers.postgres.test_search import described
from tests.stopping import Stopping

pytestmark = [NEEDED, pytest.mark.slow]


def start(spec: str, out: Path) -> Stopping:
    command = ["eval", "lab", "--limit", "120", "--method", "rag", "--index", spec, "--concurrency", "4", "--out", str(out)]
    return Stopping("tests.stopping_command", *command)


def rows(out: Path) -> list[dict[str, Any]]:
    return [row.comparable() for row in read_rows(out)]


@pytest.mark.parametrize("waits", [True, False])
def test_a_run_whose_server_is_killed(
    built: Callable[..., str], engine: Engine, other: Engine, tmp_path: Path, waits: bool
) -> None:
    passages = lab.passages()
    table = f"library_{waits}"
    built(passages[::2], table=table)
    built(passages[1::2], on=other, table=table)
    start(described(tmp_path, engine, other, tables=(table, table)), tmp_path / "undisturbed").finish()

    spec = described(tmp_path, engine, other, tables=(table, table), more=f"patience = {100 if waits else 0.3}")
    killed = start(spec, tmp_path / "killed")
    assert killed.go(5)
    other.kill()
    if waits:
        with ThreadPoolExecutor() as beside:
            ending = beside.submit(killed.finish)
            time.sleep(1)  # it may ask meanwhile
            other.start()
            ending.result()
    else:
        _, errors = killed.ended()
        assert "questions failed" in errors, errors
        other.start()
        failed = [row["error"] for row in rows(tmp_path / "killed") if row["error"]]
        assert {error["type"] for error in failed} == {"IndexUnavailable"}
        assert all("did not answer" in error["message"] for error in failed)
        right = {row["question_id"]: row for row in rows(tmp_path / "undisturbed")}
        assert 0 < len(failed) < 120
        assert all(row["error"] or row == right[row["question_id"]] for row in rows(tmp_path / "killed"))
        start(spec, tmp_path / "killed").finish()
    assert rows(tmp_path / "killed") == rows(tmp_path / "undisturbed")
