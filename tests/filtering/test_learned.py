from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gnothi.errors import InvalidInput
from gnothi.filtering.learned import FILE, LearnedGate, open_gate, write_gate
from gnothi.stats.cascade import fit_cascade
from tests.messages import refused


@pytest.fixture(scope="module")
def gate() -> LearnedGate:
    random = np.random.default_rng(0)
    first, second = random.random(400) < 0.6, random.random(400) < 0.6
    x = np.column_stack([random.normal(size=400) - 2 * first, random.normal(size=400) + 2 * second])
    cascade = fit_cascade(x, first, second, [("draft", [0], 0.0), ("reading", [1], 0.1)], wrong=1.0)
    return LearnedGate(cascade, ("doubt", "agreement"), ("draft", "reading"), (3.0, -3.0), scores=(0.1, 0.2))


def test_a_written_gate_weighs_as_before(gate: LearnedGate, tmp_path: Path) -> None:
    write_gate(tmp_path / "gate", gate, {"runs": ["one"]})
    read = open_gate(tmp_path / "gate")
    assert (read.names, read.stages, read.unmeasured) == (gate.names, gate.stages, gate.unmeasured)
    assert (read.scores, read.threshold) == (gate.scores, gate.cascade.steps[0].needed)
    assert read.sure_enough == gate.sure_enough == 0.5
    for known in ({"doubt": 1.0, "agreement": 2.0}, {"doubt": -2.0}):
        for stage in ("draft", "reading"):
            ours, theirs = gate.weigh(stage, known), read.weigh(stage, known)
            assert ours is not None
            assert ours == theirs
    assert json.loads((tmp_path / "gate" / FILE).read_text())["runs"] == ["one"]


def test_it_weighs_where_it_has_a_step_and_takes_the_missing_for_doubtful(gate: LearnedGate) -> None:
    assert gate.weigh("search", {}) is None
    assert gate.weigh("draft", {}) == gate.weigh("draft", {"doubt": 3.0}) == gate.weigh("draft", {"doubt": float("nan")})
    sure, unsure = gate.weigh("draft", {"doubt": -4.0}), gate.weigh("draft", {"doubt": 3.0})
    assert sure is not None
    assert unsure is not None
    assert sure.gain < unsure.gain
    assert sure.memory > unsure.memory
    assert unsure.needed > 0


@pytest.mark.parametrize("change", ["format", "columns", "scale", "steps"])
def test_a_broken_folder_is_refused(gate: LearnedGate, tmp_path: Path, change: str) -> None:
    with refused(InvalidInput):
        open_gate(tmp_path)
    write_gate(tmp_path, gate, {})
    document = json.loads((tmp_path / FILE).read_text())
    if change == "format":
        document["format"] = 99
    elif change == "columns":
        document["steps"][0]["columns"] = [7]
    elif change == "scale":
        document["steps"][0]["differ"]["scale"] = [0.0]
    else:
        del document["steps"]
    (tmp_path / FILE).write_text(json.dumps(document))
    with refused(InvalidInput):
        open_gate(tmp_path)
