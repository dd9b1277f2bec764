"""From names to models, indexes, methods and questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gnothi.config import read_settings
from gnothi.errors import InvalidInput, InvalidSetting, ModelUnavailable, UnknownName
from gnothi.events import Expanded, Linked, Searched, record
from gnothi.graph.building import build_graph
from gnothi.methods.planned import plan_methods
from gnothi.models import ModelSettings, RemoteSettings, VLLMSettings, model_settings, places
from gnothi.protocols import LanguageModel
from gnothi.retrieval.registry import open_index
from gnothi.session import sources
from gnothi.session.data import LAB_QUESTIONS, load_questions
from gnothi.session.record import of_settings
from gnothi.session.searches import SearchSettings
from gnothi.testing.model import Scripted
from gnothi.types import Passage
from tests.command_line import stand_in
from tests.messages import refused
from tests.session.opening import open_resources


def chosen(*overrides: str, names: tuple[str, ...] = ("direct", "rag")) -> dict[str, dict[str, object]]:
    found = plan_methods(names, read_settings(overrides=overrides))
    return {method.name: {key: one.value for key, one in method.given.items()} for method in found}


def test_a_plain_key_goes_to_every_method_that_has_it() -> None:
    assert chosen("k=5", "max_tokens=7") == {"direct": {"max_tokens": "7"}, "rag": {"k": "5", "max_tokens": "7"}}


def test_a_key_under_a_methods_name_goes_to_it_alone_and_wins() -> None:
    assert chosen("max_tokens=7", "rag.max_tokens=9") == {"direct": {"max_tokens": "7"}, "rag": {"max_tokens": "9"}}


def test_a_plain_key_wins_over_a_methods_own_of_a_layer_below(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("max_tokens = 1\n[rag]\nk = 2\nmax_tokens = 9\n")
    for overrides, k in (((), 2), (("k=5",), "5"), (("k=5", "rag.k=4"), "4")):
        (found,) = plan_methods(["rag"], read_settings(tmp_path / "settings.toml", overrides=overrides))
        assert (found.given["k"].value, found.given["max_tokens"].value) == (k, 9)
        assert (found.values["k"], found.values["max_tokens"]) == (int(k), 9)


def test_sections_of_others_are_left_alone() -> None:
    assert chosen("model.device=cpu") == {"direct": {}, "rag": {}}


@pytest.mark.parametrize("override", ["kk=1", "rag.kk=1", "nowhere.k=1"])
def test_an_unknown_key_fails(override: str) -> None:
    with refused(UnknownName):
        chosen(override)


def test_an_unknown_method_fails() -> None:
    with refused(UnknownName):
        chosen(names=("rug",))


async def test_resources_open_with_the_labs_index_by_default(scripted: Scripted) -> None:
    async with open_resources("lab", None, read_settings(), ["direct", "rag"]) as opened:
        assert opened.retriever is not None
        assert opened.method("direct").name == "direct"
        with record() as events:
            assert await opened.retriever.search("Who directed the film?", 3)
        assert isinstance(events[0], Searched)
    assert scripted.prompts == []


async def test_another_model_has_no_index_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "open_model", stand_in(Scripted({}, name="some/model")))
    async with open_resources("some/model", None, read_settings(), ["direct"]) as opened:
        assert opened.retriever is None
    monkeypatch.setattr(places, "_reach", lambda *_: None)  # as if the hub had it
    with refused(InvalidSetting):
        async with open_resources("some/model", None, read_settings(), ["direct", "rag"]):
            pass


async def test_a_wrong_model_is_told_before_a_missing_index(tmp_path: Path) -> None:
    for wrong in ("./absent", str(tmp_path), "nobody/no-such-model", "vllm:./absent"):
        with refused(ModelUnavailable):
            async with open_resources(wrong, None, read_settings(), ["rag"]):
                pass


async def test_an_index_that_is_a_graph_shows_what_it_looks_up(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("head\trelation\ttail\nthe amber gate\tdirected by\tada bram\n")
    build_graph([tmp_path / "facts.tsv"], tmp_path / "graph")
    index = open_index(str(tmp_path / "graph"))
    with record() as events:
        assert await index.search("Who directed the amber gate?", 3)
    assert [type(event) for event in events] == [Linked, Expanded, Searched]
    await index.aclose()


async def test_settings_are_checked_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "open_model", stand_in)  # which would fail, having no aclose
    with pytest.raises(UnknownName):
        async with open_resources("lab", None, read_settings(overrides=["kk=1"]), ["rag"]):
            pass


async def test_further_models_are_opened_once_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    closed: list[str] = []

    class Named(Scripted):
        async def aclose(self) -> None:
            closed.append(self.name)

    def open_model(spec: str, settings: object = None) -> LanguageModel:  # noqa: ARG001
        opened.append(spec)
        return Named({}, name=spec)

    monkeypatch.setattr(sources, "open_model", open_model)
    given = read_settings(overrides=["judge=small", "keqa.utility_judge=small", "reader=main", "k=3", "alpha=1"])
    async with open_resources("main", "lab", given, ["keqa", "rag"]) as found:
        method: Any = found.method("keqa")
        assert method.judge is method.utility_judge
        assert (method.judge.name, method.reader) == ("small", found.model)
        assert (method.k, method.alpha, method.reference) == (3, 1.0, None)
        assert found.method("rag").name == "rag"
    assert opened == ["main", "small"]
    assert sorted(closed) == ["main", "small"]


@pytest.mark.usefixtures("scripted")
async def test_a_utility_reference_is_opened(tmp_path: Path) -> None:
    judged = [{"id": "p", "text": "Mira was born in Kestrel.", "title": "", "label": 1}]
    (tmp_path / "labels.jsonl").write_text(json.dumps({"question": "Where was Mira born?", "judged": judged}) + "\n")
    (tmp_path / "reference.json").write_text(json.dumps({"format": 1, "encoder": "lexical"}))
    given = read_settings(overrides=[f"reference={tmp_path}", "references=random"])
    async with open_resources("lab", None, given, ["keqa"]) as found:
        method: Any = found.method("keqa")
        (shown,) = await method.reference.nearest("Where was Mira born?", Passage("q", "Mira."), 8, 2)
        assert (shown.question, shown.answer) == ("Where was Mira born?", "Yes")
    with refused(InvalidInput):
        async with open_resources("lab", None, read_settings(overrides=["reference=nowhere"]), ["keqa"]):
            pass


async def test_no_further_model_is_the_main_one(scripted: Scripted) -> None:
    async with open_resources("lab", None, read_settings(overrides=["judge=none"]), ["keqa"]) as found:
        method: Any = found.method("keqa")
        assert (method.judge, method.reader) == (None, None)
    assert scripted.prompts == []


def test_each_model_takes_the_settings_of_its_kind() -> None:
    given = read_settings(overrides=["model.device=cpu", "model.price_in=2", "model.gpu_memory=0.5", "model.cache=off"])
    built = model_settings(["lab", "openai:judge", "vllm:lab"], given.section("model"))
    assert built == {
        "lab": ModelSettings(device="cpu", cache="off"),
        "openai:judge": RemoteSettings(price_in=2.0, cache="off"),
        "vllm:lab": VLLMSettings(device="cpu", gpu_memory=0.5, cache="off"),
    }
    with refused(InvalidSetting):
        model_settings(["lab", "openai:judge"], given.section("model"))
    recorded = of_settings(built, given, SearchSettings())
    assert recorded["model.settings.device"] == "cpu"
    assert recorded["execution.model.settings.price_in"] == "2"
    assert recorded["model.settings.base_url"].startswith("http")


def test_lab_questions_load_by_name_and_limit() -> None:
    every = load_questions("lab")
    assert len(every) == LAB_QUESTIONS
    assert load_questions("lab", limit=20) == every[:20]
    assert {question.kind for question in load_questions("lab:two_hop", limit=50)} == {"two_hop"}
    assert len(load_questions("lab", limit=700)) == 700


def test_unknown_data_sets_fail() -> None:
    with refused(UnknownName):
        load_questions("lap")
    with refused(InvalidInput):
        load_questions("absent.jsonl")
