"""Who says what it knows without having learnt to is told of once, before the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.config import Given, Settings
from gnothi.session.plan import Request, resolve
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever


def warnings(model: Any, method: str = "skill_rag", **settings: str) -> tuple[str, ...]:
    given = Settings({key: Given(value, "a test") for key, value in settings.items()})
    return resolve(Request([method], model, ScriptedRetriever([]), settings=given)).warnings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's, which nobody trained."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("")
    return tmp_path


def test_an_untrained_model_is_told_of(folder: Path) -> None:
    (warning,) = warnings(str(folder))
    assert warning.startswith("skill_rag: nobody trained the model")
    assert "`gnothi train self-knowledge`" in warning
    assert "the setting task=useful" in warning
    assert "filter=relevance" in warnings(str(folder), "compose", filter="pmi")[0]
    assert len(warnings("lab", judge=str(folder))) == 1


def test_who_learnt_it_or_is_not_asked_is_not(folder: Path) -> None:
    assert warnings("lab") == warnings(Scripted(lambda _: "")) == ()
    assert warnings(str(folder), task="useful") == warnings(str(folder), "rag") == warnings(str(folder), "compose") == ()
    assert warnings(str(folder), judge="lab") == ()
    (folder / "gnothi.json").write_text(json.dumps({"trained": "self-knowledge"}))
    assert warnings(str(folder)) == ()
    (folder / "gnothi.json").write_text(json.dumps({"trained": "reader"}))
    assert len(warnings(str(folder))) == 1
