from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.calibration import compare
from gnothi.calibration.compare import read
from gnothi.calibration.replay import Replay, Scores
from gnothi.runs.rows import jsonable
from gnothi.stats.auroc import auroc
from tests import made_data as made
from tests.cases import each
from tests.messages import held

NEVER_ALWAYS_ORACLE = {  # what the data's README says, where it follows from the files
    "nq": (0.448, 0.490, 0.604),
    "trivia": (0.638, 0.616, 0.738),
    "hotpotqa": (0.286, 0.408, 0.458),
    "2wikimultihopqa": (0.322, 0.386, 0.512),
}


def document(replayed: Replay, price: float = 0.0, thresholds: Mapping[str, float] | None = None) -> dict[str, Any]:
    """As JSON."""
    return dict(jsonable(compare.document(replayed, price, thresholds)))


def replay(n: int = 100, sign: int = 1) -> Replay:
    random = np.random.default_rng(0)
    never, always = (random.random(n) < 0.6).astype(float), (random.random(n) < 0.6).astype(float)
    scores = random.normal(size=n) + (never < 1)
    signals = tuple(
        Scores(name, scores + noise * random.normal(size=n), never < 1, np.ones(n, dtype=bool), "never", sign)
        for name, noise in (("one", 0.0), ("two", 1.0))
    )
    return Replay("file", "data", "em", ("never", "always"), never, always, signals)


def test_a_signal_of_several_methods_goes_by_its_own_name_too() -> None:
    plain = replay()
    one, two = plain.signals
    named = replace(plain, signals=(replace(one, name="a: gram", method="a"), replace(two, name="b: gram", method="b")))
    found = document(named, thresholds={"gram": 0.5})["signals"]
    assert [found[name]["replayed"]["threshold"] for name in ("a: gram", "b: gram")] == [0.5, 0.5]
    found = document(named, thresholds={"gram": 0.5, "b: gram": 0.7})["signals"]
    assert [found[name]["replayed"]["threshold"] for name in ("a: gram", "b: gram")] == [0.5, 0.7]


def test_outcomes_of_a_file_come_to_what_is_known_of_them(made_data: Path) -> None:
    found = document(read(made_data / "recorded" / "nq.test.jsonl"))
    assert found["n"] == made.RECORDED
    assert (found["never"], found["always"], found["oracle"]) == pytest.approx((made.NEVER, made.ALWAYS, made.EITHER))


def test_recorded_outcomes_come_to_what_is_known_of_them(shared_data: Path) -> None:
    def known(name: str) -> None:
        found = document(read(shared_data / "recorded" / f"{name}.test.jsonl"))
        assert found["n"] == 500
        assert (found["never"], found["always"], found["oracle"]) == pytest.approx(NEVER_ALWAYS_ORACLE[name], abs=5e-4)

    each(known, [(name,) for name in NEVER_ALWAYS_ORACLE])


def signals_of(path: Path) -> dict[str, Any]:
    """With what holds of signals on any data."""
    found = document(read(path))
    signals: dict[str, Any] = found["signals"]
    assert signals["energy_score"]["auroc"] > 0.5  # it rises with certainty, and is turned round
    assert signals["energy_score"]["retrieve_when"] == "below"
    for signal in signals.values():
        low, high = signal["interval"]
        assert low < signal["auroc"] < high
        assert signal["chosen"]["accuracy"] <= signal["hindsight"]["accuracy"] + 1e-9
        assert 0.4 < signal["chosen"]["interval"][0] < signal["chosen"]["accuracy"] < signal["chosen"]["interval"][1] < 0.8
    return found


def test_signals_of_a_file_have_the_auroc_that_pairs_come_to(made_data: Path) -> None:
    path = made_data / "recorded" / "nq.test.jsonl"
    signals = signals_of(path)["signals"]
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    right = [row["direct"] for row in rows if row["no_retrieval"] == row["answers"][0]]
    wrong = [row["direct"] for row in rows if row["no_retrieval"] != row["answers"][0]]
    for name, sign in (("eigen_score", 1), ("perplexity", 1), ("ln_entropy", 1), ("energy_score", -1)):
        pairs = [sign * (one[name] - other[name]) for one in wrong for other in right]
        share = sum((pair > 0) + (pair == 0) / 2 for pair in pairs) / len(pairs)
        assert signals[name]["auroc"] == pytest.approx(share)
    assert signals["perplexity"]["auroc"] > 0.85 > 0.6 > signals["ln_entropy"]["auroc"]


def test_recorded_signals_have_the_published_auroc(shared_data: Path) -> None:
    def published(name: str, eigen: float, perplexity: float) -> None:
        found = signals_of(shared_data / "recorded" / f"{name}.test.jsonl")
        assert found["signals"]["eigen_score"]["auroc"] == pytest.approx(eigen, abs=1e-3)
        assert found["signals"]["perplexity"]["auroc"] == pytest.approx(perplexity, abs=1e-3)

    each(published, [("nq", 0.635, 0.629), ("trivia", 0.787, 0.741)])


def test_every_point_of_the_frontier_can_be_replayed() -> None:
    one = replay()
    for point in document(one)["signals"]["one"]["frontier"][1::9]:
        replayed = document(one, thresholds={"one": point["threshold"]})["signals"]["one"]["replayed"]
        assert (replayed["accuracy"], replayed["retrieval_rate"]) == pytest.approx(
            (point["accuracy"], point["retrieval_rate"]),
            abs=0.011,  # six digits of a threshold may fall on a score's other side
        )
        assert replayed["trusted"] == pytest.approx(100 * (1 - replayed["retrieval_rate"]))


def test_thresholds_are_in_the_direction_of_what_was_recorded() -> None:
    found = document(replay(sign=-1), thresholds={"one": 0.5})["signals"]["one"]
    assert found["retrieve_when"] == "below"
    thresholds = [point["threshold"] for point in found["frontier"][1:]]
    assert found["frontier"][0]["threshold"] is None
    assert thresholds == sorted(thresholds, reverse=True)
    # The values given are the negatives of the recorded ones: recorded below 0.5 is a value above -0.5.
    scores = replay().signals[0].values
    assert found["replayed"]["retrieval_rate"] == pytest.approx((scores > -0.5).mean())


def test_the_numbers_are_those_of_the_arrays() -> None:
    one = replay()
    found: dict[str, Any] = document(one)
    assert found["signals"]["one"]["auroc"] == pytest.approx(auroc(one.signals[0].values, one.signals[0].wrong), abs=1e-5)
    assert found["oracle"] == pytest.approx(np.maximum(one.never, one.always).mean())
    assert found["oracle_retrieval_rate"] == pytest.approx((one.always > one.never).mean())
    assert found["warnings"] == []


def test_a_signal_that_tells_kinds_of_question_alone_is_told() -> None:
    plain = replay(200)
    easy = np.arange(200) % 2 == 0
    never = np.where(easy, np.arange(200) % 4 == 0, np.arange(200) % 20 == 1).astype(float)
    rising = np.random.default_rng(1).normal(size=200)
    told = {"kinds": rising + 9.0 * ~easy, "knows": rising + 9.0 * (never < 1)}
    signals = tuple(Scores(name, values, never < 1, np.ones(200, dtype=bool), "never") for name, values in told.items())
    mixed = replace(plain, never=never, signals=signals, kinds=tuple(np.where(easy, "comparison", "bridge").tolist()))
    found = document(mixed)
    (warning,) = found["warnings"]
    area = f"{found['signals']['kinds']['auroc']:.2f}".removeprefix("0")
    assert warning.startswith(f"AUROC over all questions, and among those of one kind: kinds {area}, ")
    assert "knows" not in warning.partition(": ")[2].partition(". ")[0]
    assert found["signals"]["knows"]["within"] == 1.0
    assert found["signals"]["kinds"]["within"] == pytest.approx(0.5, abs=0.12)
    alike = document(replace(mixed, kinds=()))
    assert alike["warnings"] == []
    assert "within" not in alike["signals"]["kinds"]
    many = replace(mixed, signals=tuple(replace(signals[0], name=f"kinds{n}") for n in range(6)))
    (warning,) = document(many)["warnings"]
    assert warning.count("kinds") == 4
    assert ", and 2 more (all by --json). A part of" in warning


def test_a_price_makes_retrieving_rarer() -> None:
    one = replay(400)
    free, dear = (document(one, price)["signals"]["one"]["chosen"] for price in (0.0, 0.9))
    assert dear["retrieval_rate"] < 0.05 < free["retrieval_rate"]


def test_a_gain_that_is_the_same_everywhere_has_no_interval() -> None:
    one = replay(20)
    chosen = document(replace(one, always=one.never))["signals"]["one"]["chosen"]
    assert (chosen["gain"], chosen["gain_interval"]) == (pytest.approx(0), None)


def test_too_few_questions_choose_nothing() -> None:
    found = document(replay(10))
    assert found["signals"]["one"]["chosen"] is None


@pytest.mark.parametrize(
    "threshold",
    [
        99.0,
        -99.0,
    ],
)
def test_a_threshold_that_decides_nothing_is_reported(threshold: float) -> None:
    (warning,) = document(replay(), thresholds={"one": threshold})["warnings"]
    held(warning)
