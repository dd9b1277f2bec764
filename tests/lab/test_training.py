import json
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi.errors import InvalidSetting
from gnothi.lab.training import Recipe, train

torch = pytest.importorskip("torch", reason="needs the extra 'local'")

TINY = Recipe(hidden=64, layers=2, heads=4, intermediate=64, steps=12, rows=2, width=192, warmup=2, first_stage=0.25)


@pytest.mark.slow
def test_a_resumed_training_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", TINY, probe_every=6, calibration_questions=2)
    for part in (3, 5):
        train(tmp_path / "parts", TINY, probe_every=6, stop_after=part)
    resumed = train(tmp_path / "parts", TINY, probe_every=6, calibration_questions=2)
    for name, weight in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], weight, rtol=0, atol=0)
    curves = [
        [{**json.loads(line), "seconds": 0} for line in (tmp_path / folder / "curve.jsonl").read_text().splitlines()]
        for folder in ("whole", "parts")
    ]
    assert curves[0] == curves[1]


@pytest.mark.slow
def test_the_result_is_an_ordinary_transformers_folder(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    trained = train(tmp_path, TINY, probe_every=6, calibration_questions=2)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    tokens = AutoTokenizer.from_pretrained(tmp_path)("<question> Who are you? <reason>", return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(loaded(**tokens).logits, trained(**tokens).logits)
    declared = json.loads((tmp_path / "gnothi.json").read_text())
    assert (declared["renderer"], declared["recipe"]["steps"]) == ("tagged", 12)
    assert declared["thresholds"] == {}  # it knows nothing yet: there is nothing to tell apart


@pytest.mark.parametrize("wrong", [{"hidden": 100, "heads": 3}, {"heads": 2}, {"layers": 1}, {"hidden": 32}, {"steps": 0}])
def test_a_shape_that_cannot_be_prepared_is_refused_with_advice(wrong: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="expected"):
        train(tmp_path, replace(TINY, **wrong))  # type: ignore[arg-type]
