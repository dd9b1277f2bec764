"""The shipped probe."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from gnothi import lab
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.models.identity import Identity, identify
from gnothi.signals import registry
from gnothi.signals.probe_folder import LAB, LAB_FOLDER, open_probe
from gnothi.stats.auroc import auroc

pytest.importorskip("torch", reason="the extra `local` is not installed")


def test_it_is_of_the_shipped_model_and_small() -> None:
    probe = open_probe(LAB)
    assert Identity(**probe.about["model"]) == identify("lab")
    assert sorted(path.name for path in LAB_FOLDER.iterdir()) == ["probe.json", "probe.npz", "question.json"]
    assert sum(path.stat().st_size for path in LAB_FOLDER.iterdir()) < 200_000


def test_it_tells_which_answers_are_wrong() -> None:
    from gnothi.models import load_model

    probe, settings = open_probe(LAB), ReaderSettings()
    asked = lab.questions(lab.world(), "one_hop", 120)

    async def told() -> np.ndarray:
        model = load_model("lab")
        try:
            signals = [registry.create(name, probe=probe) for name in ("probe", "question")]
            return np.array(
                [
                    await asyncio.gather(*(signal.foresee(model, settings.reading(one)) for one in asked))  # type: ignore[attr-defined]
                    for signal in signals
                ]
            )
        finally:
            await model.aclose()

    by_state, by_words = asyncio.run(told())
    # Single facts: those often seen are known and those never seen are not, with hardly an exception.
    clear = np.array([one.metadata["familiarity"] != "seldom" for one in asked])
    unknown = np.array([one.metadata["familiarity"] == "never" for one in asked])
    assert (auroc(by_state[clear], unknown[clear]) or 0) > 0.98
    assert (auroc(by_words[clear], unknown[clear]) or 0) > 0.8
