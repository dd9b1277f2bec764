"""A run over questions whose server is killed: it waits, or fails those questions and asks them again; its rows are right."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.runs.folder import read_rows
from tests.retrieval.servers.postgres.engine import NEEDED, Engine
from tests.retrieval.servers.postgres.test_search import described

pytestmark = [NEEDED, pytest.mark.slow]
ROOT = Path(__file__).parents[4]


def start(spec: str, out: Path) -> subprocess.Popen[bytes]:
    command = ["eval", "lab", "--limit", "120", "--method", "rag", "--index", spec, "--concurrency", "4", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with told(out).open("w") as log:
        return subprocess.Popen([sys.executable, "-m", "gnothi", *command], stdout=log, stderr=log, env=environment)


def told(out: Path) -> Path:
    """Where what is printed goes."""
    return out.with_suffix(".log")


def rows(out: Path) -> list[dict[str, Any]]:
    return [row.comparable() for row in read_rows(out)]


def begun(process: subprocess.Popen[bytes], out: Path) -> None:
    """Some rows are there, and not all."""
    deadline = time.monotonic() + 120
    while not (out / "rows.jsonl").exists() or not (out / "rows.jsonl").read_text().count("\n"):
        assert process.poll() is None, told(out).read_text()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("waits", [True, False])
def test_a_run_whose_server_is_killed(
    built: Callable[..., str], engine: Engine, other: Engine, tmp_path: Path, waits: bool
) -> None:
    passages = lab.passages()
    table = f"library_{waits}"
    built(passages[::2], table=table)
    built(passages[1::2], on=other, table=table)
    undisturbed = start(described(tmp_path, engine, other, tables=(table, table)), tmp_path / "undisturbed")
    assert undisturbed.wait(200) == 0, told(tmp_path / "undisturbed").read_text()

    spec = described(tmp_path, engine, other, tables=(table, table), more=f"patience = {100 if waits else 0.3}")
    killed = start(spec, tmp_path / "killed")
    begun(killed, tmp_path / "killed")
    other.kill()
    if waits:
        time.sleep(1)
        other.start()
        assert killed.wait(200) == 0, told(tmp_path / "killed").read_text()
    else:
        assert killed.wait(200) == 1  # some questions failed
        said = told(tmp_path / "killed").read_text()
        assert "IndexUnavailable" in said
        assert "did not answer" in said
        other.start()
        failed = [row for row in rows(tmp_path / "killed") if row["error"]]
        right = {row["question_id"]: row for row in rows(tmp_path / "undisturbed")}
        assert 0 < len(failed) < 120
        assert all(row["error"] or row == right[row["question_id"]] for row in rows(tmp_path / "killed"))
        again = start(spec, tmp_path / "killed")
        assert again.wait(200) == 0, told(tmp_path / "killed").read_text()
    assert rows(tmp_path / "killed") == rows(tmp_path / "undisturbed")
