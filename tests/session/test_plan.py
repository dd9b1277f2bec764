"""What a plan says and takes before the first question: who is told of that says what it knows without having learnt to; the
reader that the laboratory ships for IEKR; filters, which hold for whatever is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.config import Given, Settings, read_settings
from gnothi.errors import InvalidSetting
from gnothi.events import UnknownKeys
from gnothi.models.identity import declaration_of, identify
from gnothi.protocols import LanguageModel
from gnothi.session.plan import Request, resolve
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.training.reader.job import TrainableReader
from gnothi.types import Passage
from tests.messages import refused


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


def values(*overrides: str, **given: Any) -> tuple[Any, Any, Any]:
    (method,) = resolve(Request(methods=["iekr"], settings=read_settings(overrides=overrides), **given)).methods
    return method.values["reader"], method.values["reason"], method.named.get("reader")


def test_iekr_has_it_by_default() -> None:
    assert values() == ("lab-reader", False, (LanguageModel, "lab-reader"))
    assert values("m=10")[0] == "lab-reader"


@pytest.mark.parametrize("given", ["reader=none", "iekr.reader=none", "gate=gram", "reason=auto", "iekr.reason=true"])
def test_whoever_wants_another_has_it(given: str) -> None:
    assert values(given)[0] is None
    assert values("reader=lab")[0] == "lab"


def test_other_models_and_methods_do_without(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert values(model=str(tmp_path), graph="lab")[0] is None
    (rag,) = resolve(Request(methods=["rag"], settings=read_settings())).methods
    assert "reader" not in rag.named


def test_it_is_a_model_like_any_other_and_none_is_trained_from_it() -> None:
    assert declaration_of("lab-reader").trained == "reader"
    assert identify("lab-reader").fingerprint not in ("", identify("lab").fingerprint)
    trained = TrainableReader.of("lab-train:choice", "out", method="iekr")
    assert trained.method.values["reader"] is None


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("filters")
    (folder / "new.md").write_text("---\ndate: 2025-02-03\n---\nDana Brisk kept the lighthouse.")
    (folder / "old.md").write_text("---\ndate: 1999-12-31\n---\nDana Brisk kept the lighthouse.")
    gnothi.build_index(folder, folder / "index")
    return str(folder / "index")


def test_for_all_questions_and_for_one(index: str) -> None:
    with gnothi.open("rag", model="lab", index=index, filters=[("date", ">=", "2025-01")]) as rag:
        found = [one.passage.metadata["date"] for one in rag.search("lighthouse", 5)]
        assert found == ["2025-02-03"]
        assert rag.search("lighthouse", 5, filters="source=*old.md") == ()
        asked = rag.ask("Who kept the lighthouse?", filters="date<2000")
        assert [event.passages for event in asked.searches] == [()] * len(asked.searches)
        assert {one.metadata["date"] for one in rag.ask("Who kept the lighthouse?").evidence} <= {"2025-02-03"}
        unknown = [one for one in rag.ask("Who kept the lighthouse?", filters="lang=de").events if isinstance(one, UnknownKeys)]
        assert unknown
        assert unknown[0].lacking == ("lang",)
        assert unknown[0].known == ("date", "source")
        assert unknown[0].starred == ()


def test_what_cannot_be_is_told_before_the_first_question(index: str) -> None:
    with refused(InvalidSetting):
        gnothi.open("rag", model="lab", index=index, filters="lang=de")
    with refused(InvalidSetting):
        gnothi.open("rag", model="lab", index=ScriptedRetriever([Passage("a", "text")]), filters="lang=de")
    with refused(InvalidSetting):
        gnothi.open("rag", model="lab", index=index, filters="date>soon")
