"""A cluster of Ray with two nodes, whose nodes and drivers are killed in mid-run: the rows of a local run, each once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gnothi.runs.folder import read_rows
from gnothi.session.execute import claimed, execute
from tests.runs import ray_run

ray = pytest.importorskip("ray", reason="needs Ray; make test-ray installs it in an environment of its own")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    # Nodes inherit it, and with it this working tree; a lost node is noticed sooner than by default.
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'src'}")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    quick = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": quick})
    try:
        yield made
    finally:
        made.shutdown()


def test_killed_nodes_and_drivers_cost_what_was_under_way(cluster: Any, tmp_path: Path) -> None:
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    out, log, plan = tmp_path / "run", tmp_path / "log", ray_run.plan()
    rows = out / "rows.jsonl"

    driver = started(out, cluster.address, log)
    try:
        wait_for(rows, 15, driver)
        cluster.remove_node(second, allow_graceful=False)
        wait_for(rows, 15 + lines(rows), driver)
        driver.send_signal(signal.SIGKILL)
        said = driver.communicate()[0]
    finally:
        driver.kill()
    kept = lines(rows)
    assert kept == len(read_rows(out)) < len(plan.keys)
    assert "an actor of Ray was lost" in said

    again = started(out, cluster.address, log)
    said = again.communicate(timeout=100)[0]
    assert again.returncode == 0, said

    with claimed(plan, tmp_path / "local") as local:
        (expected,) = asyncio.run(execute([local]))
    found = {row.key: row for row in read_rows(out)}
    assert len(found) == len(plan.keys)
    # What was appended over both lives; the kill may have fallen between the events of an answer and its row.
    assert lines(out / "events.jsonl") - len(plan.keys) in (0, 1)
    assert all(found[row.key].agrees(row) for row in expected)
    computed = Counter(log.read_text().splitlines())
    assert set(computed) == {f"{method} {id}" for method, id in plan.keys}
    # Two were lost: a node, then the driver.
    assert sum(computed.values()) - len(plan.keys) <= 2 * ray_run.CONCURRENCY


def started(out: Path, address: str, log: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.runs.ray_run", str(out), f"ray:{address}", str(log)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def lines(rows: Path) -> int:
    return len(rows.read_text().splitlines()) if rows.exists() else 0


def wait_for(rows: Path, count: int, driver: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 100
    while lines(rows) < count:
        if driver.poll() is not None:
            raise AssertionError(f"the driver ended with {driver.returncode}: {driver.communicate()[0]}")
        assert time.monotonic() < until, f"{lines(rows)} rows, expected {count}"
        time.sleep(0.05)
