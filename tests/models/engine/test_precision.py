"""Which precision a model takes by itself, and that runs and calibrations keep theirs."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from gnothi.models.engine import precision
from gnothi.models.engine.precision import automatic, loss, seconds

LARGE = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12)
SMALL = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2)


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> dict[Any, float]:
    """What the trial comes to; nothing is computed."""
    took = {torch.float32: 1.0, torch.bfloat16: 0.5}
    monkeypatch.setattr(precision, "seconds", lambda _, dtype, **_how: took[dtype])
    monkeypatch.setattr(precision, "computes_bfloat16", lambda: True)
    monkeypatch.setattr(precision, "available", lambda: True)
    return took


def test_a_large_model_takes_what_is_faster(trial: dict[Any, float]) -> None:
    assert automatic(LARGE, "cpu") == "bfloat16"
    trial[torch.bfloat16] = 0.9
    assert automatic(LARGE, "cpu") == "float32"


@pytest.mark.usefixtures("trial")
def test_a_small_model_and_a_processor_without_the_instructions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert automatic(SMALL, "cpu") == "float32"
    monkeypatch.setattr(precision, "computes_bfloat16", lambda: False)
    assert automatic(LARGE, "cpu") == "float32"
    assert automatic(SMALL, "cuda") == "bfloat16"


def test_a_processor_that_emulates_bfloat16_is_told_of(trial: dict[Any, float], monkeypatch: pytest.MonkeyPatch) -> None:
    trial[torch.bfloat16] = 7.0
    assert loss(LARGE, "cpu") is None  # it has the instructions
    monkeypatch.setattr(precision, "computes_bfloat16", lambda: False)
    assert loss(LARGE, "cpu") == 7.0
    assert loss(SMALL, "cpu") is None
    assert loss(LARGE, "cuda") is None
    trial[torch.bfloat16] = 1.5  # as other work beside it may look
    assert loss(LARGE, "cpu") is None


def test_the_trial_measures_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < seconds((64, 128), torch.float32) < float("inf")
    assert 0 < seconds((64, 128), torch.bfloat16, packed=False) < float("inf")
    took = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0, 30.0, 34.0])
    with monkeypatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: next(took))
        assert seconds((64, 128), torch.float32) == 2.0  # the best of them

    class Missing:
        def __init__(self, _: object) -> None:
            raise RuntimeError("no such operation here")

    monkeypatch.setattr(precision, "Packed", Missing)
    assert seconds((64, 128), torch.bfloat16) == float("inf")
