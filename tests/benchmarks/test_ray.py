"""What Ray costs: processor time of all that a run starts, and rows beside each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.ray import LOCAL, MARK, ONE, TWO, Measured, Processors, differing, is_server, summary, targets
from gnothi.runs.rows import Row

BUSY = "import time\nwhile time.process_time() < {0}: pass\nimport sys; sys.stdin.read()"


def test_time_of_all_that_bears_the_mark_counts_whoever_its_parent_is() -> None:
    watch, others = Processors("one"), Processors("another")
    # Busy for longer than is waited for, and there until it is let go.
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY.format(0.3)!r}])"
    process = subprocess.Popen([sys.executable, "-c", child], env={**os.environ, MARK: "one"}, stdin=subprocess.PIPE)
    until = time.monotonic() + 120
    while time.monotonic() < until and (not watch.samples or watch.samples[-1][0] < 0.2):
        watch.look()
        others.look()
        time.sleep(0.01)
    process.communicate()
    assert watch.samples[-1][0] >= 0.2
    assert others.samples[-1] == (0, 0)
    before = watch.samples[-1]
    watch.look()
    assert watch.samples[-1] == before  # what has ended still counts


def test_between_two_looks_time_passes_evenly() -> None:
    watch = Processors("none")
    watch.times, watch.samples = [10.0, 20.0, 30.0], [(1.0, 0.0), (3.0, 1.0), (4.0, 1.0)]
    assert [watch.until(moment)[0] for moment in (5, 10, 15, 20, 25, 99)] == [1.0, 1.0, 2.0, 3.0, 3.5, 4.0]
    assert [watch.until(moment)[1] for moment in (5, 15, 25)] == [0.0, 0.5, 1.0]


def test_actors_are_none_of_rays_servers() -> None:
    ray = b"/env/lib/python3.11/site-packages/ray/core/src/ray/raylet/raylet"
    assert [is_server(words) for words in (ray, b"ray::IDLE", b"ray::DashboardAgent")] == [True] * 3
    assert [is_server(words) for words in (b"ray::Host.answer", b"/env/ray/bin/python\0-m\0gnothi\0eval\0--on\0ray")] == [
        False
    ] * 2


def test_rows_are_compared_but_for_seconds_and_last_digits(tmp_path: Path) -> None:
    def run(name: str, answers: list[str], seconds: float, uncertainty: float = 3.474) -> Path:
        (tmp_path / name).mkdir()
        cost = dict.fromkeys(("retrievals", "model_calls", "prompt_tokens", "generated_tokens"), 1) | {"seconds": seconds}
        rows = [Row("direct", str(number), "Q?", one, uncertainty=uncertainty, cost=cost) for number, one in enumerate(answers)]
        (tmp_path / name / "rows.jsonl").write_text("".join(json.dumps(row.as_dict()) + "\n" for row in rows))
        return tmp_path / name

    local = run("local", ["a", "b", "c"], 1.0)
    assert differing(run("same", ["a", "b", "c"], 2.0, 3.473), local) == 0
    assert differing(run("other", ["a", "x"], 1.0), local) == 2
    assert differing(run("surer", ["a", "b", "c"], 1.0, 2.0), local) == 3


@pytest.mark.parametrize(("seconds", "met"), [(10.9, True), (11.1, False)])
def test_the_middle_of_ratios_decides(seconds: float, met: bool) -> None:
    rounds = [
        {
            LOCAL: Measured(12 * slow, 10 * slow, 5, 4, 0, 0),
            ONE: Measured(20 * slow, seconds * slow, 6, 4.2, 0.2, 0),
            TWO: Measured(22 * slow, 6 * slow, 7, 4.4, 0.2, 1),
        }
        for slow in (1, 3, 2)
    ]
    found = {"direct": summary(rounds)}
    assert list(targets(found).values()) == [met, False]
    assert found["direct"]["of_local"]["all_s"][ONE].median == pytest.approx(20 / 12)
    assert found["direct"]["of_local"]["asked_own_cpu_s"][ONE].median == pytest.approx(1)
    assert found["direct"]["second_actor"]["asked_s"].median == pytest.approx(seconds / 6)
