"""What a training is said to take, against the model itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gnothi.models import LAB_FOLDER, ModelSettings
from gnothi.models.engine.loading import load
from gnothi.training.adapter import Tuning, adapted
from gnothi.training.finetuning import Origin, quiet
from gnothi.training.memory import Memory, Passes, Sizes, estimate, of_model, report, sizes_of
from tests.training.recording import RecordingWatch

LAB = str(LAB_FOLDER)
LLAMA = Sizes(weights=6_738_415_616, trained=39_976_960, hidden=4096, layers=32, words=32_000)


@pytest.mark.parametrize("tuning", [Tuning(), Tuning(rank=3, targets=("q_proj", "v_proj")), Tuning(adapter="full")])
def test_weights_are_counted_as_they_are(tuning: Tuning) -> None:
    pytest.importorskip("peft")
    model, _, _ = load(LAB, "lab", ModelSettings(pack_weights=False))
    found = sizes_of(LAB, tuning)
    assert found is not None
    assert found.weights == sum(one.numel() for one in model.parameters())
    assert (found.hidden, found.layers) == (128, 4)
    with quiet():
        changed = adapted(model, tuning, 0)
    assert found.trained == sum(one.numel() for one in changed.parameters() if one.requires_grad)


def test_what_seven_billion_weights_take() -> None:
    """Half precision, checkpoints: 13.5 GB, and of an adapter of 40 million weights 4 bytes, gradient and two states each."""
    passes = Passes(16, 512, 24)
    lora = estimate(LLAMA, Tuning(), passes, 2, False, True)
    assert lora.weights == pytest.approx(2 * 6_738_415_616 + 4 * 39_976_960)
    assert lora.learning == 12 * 39_976_960
    everything = estimate(replace(LLAMA, trained=LLAMA.weights), Tuning(adapter="full"), passes, 2, False, True)
    assert everything.learning == 6 * LLAMA.weights
    small = estimate(LLAMA, Tuning(), passes, 2, True, True)
    assert small.weights < 0.3 * lora.weights
    assert small.passing == lora.passing < estimate(LLAMA, Tuning(), passes, 2, False, False).passing / 10
    assert lora.total == lora.weights + lora.learning + lora.passing


def test_it_is_told_and_warned_of() -> None:
    watch = RecordingWatch()
    report(Memory(2e9, 1e9, 0.04e9), watch)
    assert watch.messages == [
        "training: about 3.0 GB on each device (2.0 of weights, 1.0 of gradients and optimiser, 0.04 of passes). This is a "
        "guess from sizes."
    ]
    assert not watch.warnings
    report(Memory(2e15, 0, 0), watch)
    assert "rows=4" in watch.warnings[0]


def test_what_cannot_be_known_is_not_said(tmp_path: Path) -> None:
    assert sizes_of(str(tmp_path), Tuning()) is None
    assert of_model(Origin("x", str(tmp_path), ModelSettings()), Tuning(), Passes(1, 1, 1)) is None
    found = of_model(Origin("lab", LAB, ModelSettings(dtype="bfloat16", device="cpu")), Tuning(adapter="full"), Passes(1, 1, 1))
    assert found is not None
    assert found.weights == 2 * 972_288
