from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnothi.calibration.choose import Chosen, Sample, choose
from gnothi.calibration.file import VERSION, Calibration, as_dict, details_of, read, write
from gnothi.calibration.mismatch import check_model
from gnothi.errors import InvalidInput, OtherModel
from gnothi.models.identity import Identity
from tests.messages import refused


def chosen() -> Chosen:
    random = np.random.default_rng(0)
    scores = random.random(300)
    return choose(Sample(scores, (random.random(300) > scores).astype(float), np.ones(300)), target_error=0.3, price=0.1)


def calibration(found: Chosen, sign: int = 1) -> Calibration:
    return Calibration(
        method="seakr",
        signal="gram",
        threshold=sign * found.threshold,
        model=Identity("lab", "abc"),
        dataset="some",
        questions=found.n,
        metric="em",
        date="2026-11-22T09:00:00+00:00",
        fires="above" if sign > 0 else "below",
        settings={"signal.samples": 20, "signal.layer": None},
        failures=2,
        answers_of="cot",
        details=details_of(found, sign),
    )


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    found = chosen()
    made = calibration(found)
    write(made, tmp_path / "deep" / "file.toml")
    again = read(tmp_path / "deep" / "file.toml")
    assert again.threshold == found.threshold  # to the last bit
    assert as_dict(again) == as_dict(made)
    assert (again.settings["signal.samples"], again.failures, again.answers_of) == (20, 2, "cot")
    assert found.probabilities is not None
    assert again.probability_wrong(0.3) == pytest.approx(found.probabilities.platt([0.3])[0])
    assert found.guarantee is not None
    assert again.details["guarantee"]["accepted"] == list(found.guarantee.accepted)
    curve = again.details["probabilities"]["isotonic"]
    assert len(curve["knots"]) == len(curve["heights"]) < 100
    steps = np.searchsorted(curve["knots"], [0.1, 0.5, 0.9], side="right") - 1
    assert np.array(curve["heights"])[steps] == pytest.approx(found.probabilities.isotonic([0.1, 0.5, 0.9]), abs=1e-5)


def test_a_rule_for_stopping_early_is_read_again_or_refused(tmp_path: Path) -> None:
    made = replace(calibration(chosen()), threshold=-6.0, stopping="4: -6.5 inf 0.3, 8: -6.25 -5.0 0.1")
    made = replace(made, details={**made.details, "stopping": {"samples": 0.4, "differ": 0.01, "all_differ": 0.01}})
    again = made.save(tmp_path / "file.toml")
    assert as_dict(read(tmp_path / "file.toml")) == as_dict(made)
    assert read(tmp_path / "file.toml").stopping == made.stopping == again.stopping
    assert "stopping" not in as_dict(calibration(chosen()))["gate"]
    for other in (replace(made, stopping="4: -5.0 -6.5 0.3"), replace(made, threshold=-4.0)):  # edited by hand, say
        other.save(tmp_path / "file.toml")
        with refused(InvalidInput):
            read(tmp_path / "file.toml")


def test_worth_says_that_it_is_not_of_the_guaranteed_threshold() -> None:
    random = np.random.default_rng(0)
    scores = random.random(300)
    sample = Sample(scores, (random.random(300) > scores).astype(float), np.ones(300))
    for target, of in (
        (0.3, "thresholds chosen by price, without the limit of the guarantee"),
        (None, "thresholds chosen by price"),
    ):
        assert details_of(choose(sample, target, price=0.1))["worth"]["of"] == of


def test_signals_that_rise_with_certainty_keep_their_direction(tmp_path: Path) -> None:
    found = chosen()
    write(calibration(found, -1), tmp_path / "file.toml")
    again = read(tmp_path / "file.toml")
    assert (again.threshold, again.fires) == (-found.threshold, "below")
    assert found.guarantee is not None
    assert again.details["guarantee"]["threshold"] == -found.guarantee.threshold
    assert found.probabilities is not None
    assert again.probability_wrong(-0.3) == pytest.approx(found.probabilities.platt([0.3])[0])


def test_always_is_an_infinite_threshold(tmp_path: Path) -> None:
    found = choose(Sample(np.arange(40.0), np.zeros(40), np.ones(40)))
    assert found.threshold == -math.inf
    write(calibration(found), tmp_path / "file.toml")
    assert read(tmp_path / "file.toml").threshold == -math.inf
    assert read(tmp_path / "file.toml").probability_wrong(3.0) is None


def test_files_from_before_failures_and_answers_were_kept(tmp_path: Path) -> None:
    write(calibration(chosen()), tmp_path / "file.toml")
    text = (tmp_path / "file.toml").read_text(encoding="utf-8")
    kept = 'failures = 2\nanswers_of = "cot"\n'
    assert kept in text
    (tmp_path / "file.toml").write_text(text.replace(kept, ""), encoding="utf-8")
    again = read(tmp_path / "file.toml")
    assert (again.failures, again.answers_of) == (0, "")


def test_another_model_is_an_error() -> None:
    made = calibration(chosen())
    check_model(made, Identity("lab", "abc"))
    check_model(made, Identity("a/copy", "abc"))
    check_model(made, Identity("lab"))
    with refused(OtherModel):
        check_model(made, Identity("other"))
    with refused(OtherModel):
        check_model(made, Identity("lab", "xyz"))


@pytest.mark.parametrize(
    "text",
    [
        "version = 2",
        "version = 1",
        "threshold = 3",
        "no toml",
    ],
)
def test_files_that_are_no_calibration(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.toml").write_text(text)
    with refused(InvalidInput):
        read(tmp_path / "file.toml")
    with refused(InvalidInput):
        read(tmp_path / "absent.toml")


def damaged_is_refused(folder: Path, damaged: str = "", settings: str = "{}") -> None:
    (folder / "c.toml").write_text(
        f'version = {VERSION}\n{damaged}\n[made]\ndate = "1"\ngnothi = "1"\n[model]\nname = "m"\nfingerprint = "f"\n'
        '[data]\nname = "d"\nquestions = 1\nmetric = "em"\nfingerprint = "f"\n'
        f'[gate]\nsignal = "gram"\nthreshold = 1.0\nfires = "high"\nsettings = {settings}\n'
    )
    with refused(InvalidInput):
        read(folder / "c.toml")


@pytest.mark.parametrize("settings", ["7", '"form"', "[1]"])
def test_settings_that_are_no_table(tmp_path: Path, settings: str) -> None:
    damaged_is_refused(tmp_path, settings=settings)


@pytest.mark.parametrize(
    "damaged",
    [
        "probabilities = 7",
        "probabilities = {}",
        'probabilities = { scores = "negated" }',
        'probabilities = { scores = "negated", platt = 1 }',
        'probabilities = { scores = "x", platt = { slope = "a", intercept = 1 } }',
        "guarantee = { target_error = 0.1 }",
        'worth = { accuracy = "high" }',
    ],
)
def test_details_that_lack_something(tmp_path: Path, damaged: str) -> None:
    damaged_is_refused(tmp_path, damaged)
