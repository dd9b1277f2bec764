"""Thresholds that nobody chose for the model at hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gnothi.config import Settings, read_settings
from gnothi.session.knowledge import uncalibrated
from gnothi.session.plan import Request, resolve
from gnothi.session.resources import opened
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever


def _said(method: str, *given: str, thresholds: dict[str, float] | None = None) -> str | None:
    settings: Settings = read_settings(None, {}, given)
    model: Any = Scripted({}, name="some-model", thresholds=thresholds)
    plan = resolve(Request([method], model, ScriptedRetriever([], name="notes"), settings=settings))

    async def ask() -> str | None:
        async with opened([plan]) as found:
            return uncalibrated(plan, found)

    return asyncio.run(ask())


def test_the_papers_threshold_with_another_model_is_told_with_what_to_do() -> None:
    said = _said("seakr", "signal.samples=4")
    assert said is not None
    assert "threshold (-6 for gram) was chosen for other models, never for some-model" in said
    assert (
        "`gnothi calibrate QUESTIONS --method seakr --model some-model --index notes --set signal.samples=4 --out gate.toml`"
        in said
    )
    assert "`--calibration gate.toml`" in said


@pytest.mark.parametrize(
    ("method", "given", "thresholds"),
    [
        ("seakr", ("threshold=-4",), None),
        ("seakr", ("seakr.threshold=inf",), None),
        ("seakr", ("always_retrieve=true",), None),
        ("seakr", (), {"gram": -3.0}),
        ("compose", (), None),
        ("keqa", (), None),
        ("rag", (), None),
    ],
)
def test_where_somebody_chose_it_or_nothing_is_held_against_it_nothing_is_said(
    method: str, given: tuple[str, ...], thresholds: dict[str, float] | None
) -> None:
    assert _said(method, *given, thresholds=thresholds) is None


def test_a_threshold_on_counts_belongs_to_no_model() -> None:
    assert _said("seakr", "signal=cooccurrence") is None
