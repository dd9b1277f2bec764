"""What the programs compute from what they measured."""

from __future__ import annotations

import pytest

from benchmarks import memory, probe, serving, throughput, uncertainty
from benchmarks._lab_runs import LabRun, every
from benchmarks._shared import spread
from gnothi.types import Question


def test_occupancy_counts_rows_against_slots() -> None:
    # Ten steps of 100 rows, then ten of 20 for the last answer.
    run = LabRun(2, 4.0, 3.0, slots=100, steps=[10, 20], fed_rows=[1000, 1200], samples=[2000, 3000])
    assert run.per_second == 0.5
    assert run.occupancy() == pytest.approx(0.6)
    assert run.occupancy(0.5) == 1.0
    assert run.rows_per_step() == 60.0
    assert run.samples_per_row == 2.5


def test_a_sample_of_questions_is_spread_evenly() -> None:
    questions = [Question(str(number), "") for number in range(10)]
    assert [question.id for question in every(questions, 4)] == ["0", "2", "5", "7"]
    assert every(questions, 99) == questions


def test_uncertainty_is_held_against_what_was_asked() -> None:
    rounds = [
        {"floor": 1.0, "ours, cold": 1.6, "ours, warm": 1.4, "library": 26.0, "procedure": 18.0},
        {"floor": 2.0, "ours, cold": 3.2, "ours, warm": 2.8, "library": 52.0, "procedure": 36.0},
    ]
    extra = {"floor": 80.0, "ours, cold": 90.0, "ours, warm": 120.0, "library": 2000.0, "procedure": 900.0}
    found = uncertainty.compare(rounds, rounds, extra, 1500)
    assert found["multiples_of_floor"]["ours, cold"] == spread([1.6, 1.6])
    assert found["faster_than"]["procedure"]["ours, cold"].median == pytest.approx(11.25)
    assert found["memory_share_of_library"]["ours, warm"] == pytest.approx(0.06)
    assert list(found["targets_met"].values()) == [True, True, True, False, True, False]
    assert uncertainty.compare(rounds, rounds, extra, 700)["targets_met"] == {}


def test_throughput_targets_take_the_best_concurrency() -> None:
    level = {"faster": spread([9.0]), "occupancy": spread([0.8]), "occupancy_until_90": spread([0.9])}
    alone = {"faster": spread([1.0]), "occupancy": spread([0.02]), "occupancy_until_90": spread([0.02])}
    assert list(throughput.targets({"1": alone, "64": level}).values()) == [True, False, True]


def test_growth_leaves_out_what_fills_caches() -> None:
    figures = [{"answered": n, "resident_mb": 500.0 + min(n, 200) + 0.001 * n, "peak_mb": 900.0} for n in range(0, 1001, 100)]
    grown = memory.growth(figures, 200)
    assert grown["resident_mb"]["added"] == pytest.approx(0.8)
    assert grown["resident_mb"]["per_1000"].median == pytest.approx(1.0)
    assert grown["peak_mb"]["added"] == 0.0
    assert memory.growth(figures[:1], 200)["resident_mb"] == {"added": None, "per_1000": None}


def test_costs_of_a_score_beyond_the_draft() -> None:
    def cost(cpu: float, tokens: float, rows: float) -> dict[str, float]:
        return {"cpu_seconds": cpu, "seconds": cpu, "tokens": tokens, "read": 10.0, "rows": rows}

    one = {
        "draft": cost(1.0, 16, 15),
        "draft and probe": cost(1.1, 17, 15),
        "draft and U": cost(3.0, 316, 75),
        "probe": cost(0.2, 1, 0),
        "U": cost(2.6, 300, 70),
    }
    found = probe.shares([one, one])
    assert found["u_to_probe_beyond_draft"]["cpu_seconds"] == pytest.approx(20.0)
    assert found["u_to_probe_beyond_draft"]["tokens"] == 300
    assert found["u_to_probe_beyond_draft"]["rows"] is None
    assert found["u_to_probe_alone_cpu"].median == pytest.approx(13.0)
    met = probe.targets({"cost": found, "accuracy": {"signals": {"probe lab": {"ahead_of_u": -0.03}}}})
    assert met == {
        "probe: AUROC within 0.02 of U's": False,
        "probe: at most 1/15 of U's processor time": False,  # 13 of it
        "probe: at most 1/15 of U's processor time beyond the draft": True,  # 20 of it
    }


def test_a_servers_memory_is_looked_at_after_the_first_fifth() -> None:
    figures = [(n, 300.0 + 50.0 * (n > 250) + 0.003 * n) for n in range(250, 5001, 250)]
    assert serving.growth(figures).median == pytest.approx(3.0)
    assert serving.growth(figures[:2]) is None


def test_targets_of_a_server() -> None:
    found = {
        "throughput": {"of_eval": spread([0.9])},
        "streams": {"chunk": {"of_alone": spread([1.5])}, "decision": {"of_alone": spread([2.5])}},
        "memory": {"per_1000": spread([0.5])},
    }
    assert list(serving.targets(found).values()) == [True, True, False, True]
    assert not list(serving.targets(found | {"memory": {"per_1000": None}}).values())[3]
