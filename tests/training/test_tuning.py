"""Adapters: on which layers, and how they end up in the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("peft")

from gnothi.errors import InvalidSetting
from gnothi.models import LAB_FOLDER, ModelSettings
from gnothi.models.engine.loading import load
from gnothi.training.finetuning import Origin, quiet
from gnothi.training.tuning import Tuning, adapted, merged

ORIGIN = Origin("lab", str(LAB_FOLDER), ModelSettings(pack_weights=False))


def model() -> Any:
    return load(ORIGIN.source, "lab", ORIGIN.to_train)[0]


def test_layers_that_are_not_there() -> None:
    with quiet(), pytest.raises(InvalidSetting, match=r"'targets': got query, expected names of this model's layers: .*q_proj"):
        adapted(model(), Tuning(targets=("query",)), 0)


def test_the_scale() -> None:
    assert (Tuning().scale, Tuning(rank=4).scale, Tuning(alpha=3.0).scale) == (32.0, 8.0, 3.0)


def test_what_was_quantised_is_merged_in_full(tmp_path: Path) -> None:
    """There is no device for four bits here: a model that says it has them is loaded anew, and ends in the same weights."""
    with quiet():
        trained = adapted(model(), Tuning(targets=("q_proj",)), 0)
        for name, weights in trained.named_parameters():
            if "lora_B" in name:
                weights.data.fill_(0.01)
        trained.save_pretrained(tmp_path)
        quantised = adapted(model(), Tuning(targets=("q_proj",)), 0)
        quantised.get_base_model().is_quantized = True
        anew = merged(quantised, ORIGIN, tmp_path)
        whole = merged(trained, ORIGIN, tmp_path)
    for (name, one), (_, other) in zip(anew.named_parameters(), whole.named_parameters(), strict=True):
        assert one.equal(other), name
    assert not anew.get_submodule("model.layers.0.self_attn.q_proj").weight.equal(
        model().get_submodule("model.layers.0.self_attn.q_proj").weight
    )
