"""What there is, as text and as JSON."""

from __future__ import annotations

import pytest

from gnothi import methods
from gnothi.datasets import file_formats
from gnothi.methods.registry import METHODS
from gnothi.registry import Entry
from tests.command_line import Json, Run
from tests.messages import complained


@pytest.mark.parametrize("kind", ["methods", "signals", "models", "datasets", "plugins"])
def test_a_listing_fits_80_columns(gnothi: Run, kind: str) -> None:
    code, out, err = gnothi("list", kind)
    assert (code, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())


def test_every_method_is_listed_with_needs_and_settings(gnothi: Run, gnothi_json: Json) -> None:
    documents = {document["name"]: document for document in gnothi_json("list", "methods")}
    assert set(documents) == set(methods.names())
    assert documents["seakr"]["needs"] == ["model", "retriever", "hidden states"]
    threshold = next(setting for setting in documents["seakr"]["settings"] if setting["key"] == "threshold")
    assert threshold["default"] == "none"
    assert threshold["help"]
    assert "threshold=none" in gnothi("list", "methods")[1]


def test_one_method_is_explained(gnothi: Run) -> None:
    out = gnothi("list", "methods", "rag")[1]
    assert "Passages to retrieve. (at least 1)" in " ".join(out.split())
    assert "seakr" not in out


def test_a_signal_is_explained(gnothi: Run, gnothi_json: Json) -> None:
    out = gnothi("list", "signals", "gram", "perplexity")[1]
    assert "hidden states" in out
    assert "signal.alpha=0.001" in out
    assert "consistency" not in out
    (found,) = gnothi_json("list", "signals", "consistency")
    assert "signal.samples" in found["settings"]


def test_settings_that_methods_share_stand_once(gnothi: Run, gnothi_json: Json) -> None:
    out = gnothi("list", "methods", "rag")[1]
    assert "signal.alpha" not in out
    assert "gnothi list settings" in out
    assert "signal.alpha=0.001" in gnothi("list", "settings")[1]
    found = gnothi_json("list", "settings")
    assert found["signals"]["perplexity"] == []
    assert "signal.temperature" in found["signals"]["consistency"]
    own = sum(len(document["settings"]) for document in gnothi_json("list", "methods"))
    assert own + sum(map(len, found["groups"].values())) <= 220


def test_an_unknown_method_is_an_error(gnothi: Run) -> None:
    complained(gnothi("list", "methods", "raag"))


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package brought a method that works and another one that does not."""
    working = Entry("mine", "gnothi.methods.rag:RetrieveAlways", "some-dist 2.0")
    broken = Entry("bad", "no_such_module:Thing", "bad-dist 1.0")
    monkeypatch.setitem(vars(METHODS), "_offered", {"mine": [working], "bad": [broken]})


@pytest.mark.usefixtures("offered")
def test_a_plug_in_is_listed_with_its_origin_and_a_broken_one_is_told(gnothi: Run) -> None:
    warning = "warning: method 'bad' of bad-dist 1.0 (no_such_module:Thing) cannot be loaded: ModuleNotFoundError"
    code, out, err = gnothi("list", "methods")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(warning)
    assert "from    some-dist 2.0" in out
    code, out, err = gnothi("list", "plugins")
    assert out == "  method mine  some-dist 2.0 (gnothi.methods.rag:RetrieveAlways)\n"
    assert err.startswith(warning)


@pytest.mark.usefixtures("offered", "scripted")
def test_a_broken_plug_in_harms_nothing_but_itself(gnothi: Run) -> None:
    assert gnothi("ask", "Who wrote the known book?", "--method", "direct")[0] == 0
    complained(gnothi("ask", "Who wrote the known book?", "--method", "bad"), 3)


def test_data_sets_and_formats_are_listed(gnothi_json: Json) -> None:
    document = gnothi_json("list", "datasets")
    assert {"lab", "lab:one_hop"} <= {item["name"] for item in document["datasets"]}
    assert {item["name"] for item in document["formats"]} == set(file_formats())


def test_a_model_is_opened_and_told_of(gnothi: Run, gnothi_json: Json) -> None:
    told = gnothi_json("list", "models", "lab")
    assert (told["model"], told["attention"], told["ffn"]) == ("lab", "forked", "mlp")
    assert "hidden states" in told["offers"]
    assert told["trial"].startswith("forked equals plain passes")
    assert told["trial"] in gnothi("list", "models", "lab")[1]


def test_models_are_listed_with_their_settings(gnothi_json: Json) -> None:
    document = gnothi_json("list", "models")
    assert "lab" in {item["spec"] for item in document["models"]}
    assert all(setting["key"].startswith("model.") for setting in document["settings"])
    kinds = {
        key: [setting["models"] for setting in document["settings"] if setting["key"] == f"model.{key}"]
        for key in ("cache", "device", "attention", "gpu_memory", "base_url")
    }
    assert kinds == {
        "cache": ["in this process", "behind an API", "under vLLM"],
        "device": ["in this process", "under vLLM"],
        "attention": ["in this process"],
        "gpu_memory": ["under vLLM"],
        "base_url": ["behind an API"],
    }


def test_settings_go_with_a_model(gnothi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    complained(gnothi("list", "methods", "rag", "--set", "k=3"))
    complained(gnothi("list", "models", "--set", "model.dtype=float32"))
    complained(gnothi("list", "models", "lab", "--set", "k=3"))
    monkeypatch.setenv("GNOTHI_MODEL__DTYPE", "float32")  # for other commands
    monkeypatch.setenv("GNOTHI_K", "3")
    assert gnothi("list", "methods", "rag")[0] == 0
    assert gnothi("list", "models")[0] == 0
