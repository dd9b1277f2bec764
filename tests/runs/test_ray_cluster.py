"""A cluster of Ray with two nodes, whose nodes and drivers are killed in mid-run: the rows of a local run, each once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gnothi.filtering.reference import LABELS
from gnothi.runs.folder import read_rows
from gnothi.session.execute import claimed, execute
from gnothi.training.utility_reference import train
from tests.runs import ray_run

ray = pytest.importorskip("ray", reason="needs Ray; make test-beside installs it in an environment of its own")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    # Nodes inherit it, and with it this working tree; a lost node is noticed sooner than by default.
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'src'}")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # by default workers give way to whatever else the machine does
    quick = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    made: Any = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    )
    try:
        yield made
    finally:
        made.shutdown()


def test_killed_nodes_and_drivers_cost_what_was_under_way(cluster: Any, tmp_path: Path) -> None:
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    out, log, plan = tmp_path / "run", tmp_path / "log", ray_run.plan()
    rows, said = out / "rows.jsonl", tmp_path / "said"

    driver = started(out, cluster.address, log, said)
    try:
        wait_for(lambda: len({pid for pid, _ in computed(log)}) == 2, driver, said)
        cluster.remove_node(second, allow_graceful=False)
        wait_for(lambda: "an actor of Ray was lost" in said.read_text(), driver, said)
        after = lines(rows)
        wait_for(lambda: lines(rows) >= after + 5, driver, said)
        driver.send_signal(signal.SIGKILL)
        driver.wait(120)
    finally:
        driver.kill()
    kept = lines(rows)
    assert kept == len(read_rows(out)) < len(plan.keys)

    again = started(out, cluster.address, log, said)
    assert again.wait(300) == 0, said.read_text()

    with claimed(plan, tmp_path / "local") as local:
        (expected,) = asyncio.run(execute([local]))
    found = {row.key: row for row in read_rows(out)}
    assert len(found) == len(plan.keys)
    # What was appended over both lives; the kill may have fallen between the events of an answer and its row.
    assert lines(out / "events.jsonl") - len(plan.keys) in (0, 1)
    assert all(found[row.key].agrees(row) for row in expected)
    answers = Counter(answer for _, answer in computed(log))
    assert set(answers) == {f"{method} {id}" for method, id in plan.keys}
    # Two were lost: a node, then the driver.
    assert sum(answers.values()) - len(plan.keys) <= 2 * ray_run.CONCURRENCY


def test_a_file_of_questions_is_answered_there(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("Who directed The Amber Harbour?\nWho is the star of The Hollow Letter?\n")
    said = []
    for name, where in (("here", []), ("there", ["--on", f"ray:{cluster.address}"])):
        command = ["ask", "--file", str(tmp_path / "questions.txt"), "--method", "rag", "--out", str(tmp_path / name), *where]
        done = subprocess.run([sys.executable, "-m", "gnothi", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert len(read_rows(tmp_path / "there")) == len(said[1].splitlines()) == 2


def test_a_command_that_is_asked_to_end_says_what_is_kept(cluster: Any, tmp_path: Path) -> None:
    """Ray takes SIGTERM for itself, and would end with a trace of the stack."""
    out, said = tmp_path / "run", tmp_path / "said"
    command = ["eval", "lab", "--method", "rag", "--limit", "400", "--concurrency", "2", "--out", str(out)]
    with said.open("wb") as file:
        driver = subprocess.Popen(
            [sys.executable, "-m", "gnothi", *command, "--on", f"ray:{cluster.address}"], stdout=file, stderr=file
        )
    try:
        wait_for(lambda: lines(out / "rows.jsonl") >= 3, driver, said)
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 128 + signal.SIGTERM, said.read_text()
    finally:
        driver.kill()
    assert "Run the same command again to resume" in said.read_text()
    assert "SIGTERM received" not in said.read_text()
    assert 3 <= len(read_rows(out)) < 400


def test_what_training_learns_from_is_found_out_there(cluster: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"limit": 12, "settings": {"k": 2}}
    here, there = tmp_path / "here", tmp_path / "there"
    assert train("lab-train:one_hop", here, **given) == replace(
        train("lab-train:one_hop", there, on=f"ray:{cluster.address}", **given), out=here
    )
    assert (here / LABELS).read_text() == (there / LABELS).read_text()


def started(out: Path, address: str, log: Path, said: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.runs.ray_run", str(out), f"ray:{address}", str(log)]
    with said.open("wb") as file:
        return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)


def computed(log: Path) -> list[tuple[str, str]]:
    """Of every answer that an actor finished, the actor's process and the answer's name."""
    parts = [line.partition(" ") for line in log.read_text().splitlines()] if log.exists() else []
    return [(pid, answer) for pid, _, answer in parts]


def lines(rows: Path) -> int:
    return len(rows.read_text().splitlines()) if rows.exists() else 0


def wait_for(done: Callable[[], bool], driver: subprocess.Popen[bytes], said: Path) -> None:
    until = time.monotonic() + 300
    while not done():
        assert driver.poll() is None, f"the driver ended with {driver.returncode}: {said.read_text()}"
        assert time.monotonic() < until, said.read_text()
        time.sleep(0.05)
