from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from gnothi import methods
from gnothi.config import Given
from gnothi.errors import InvalidSetting, MissingCapability, UnknownName
from gnothi.methods.seakr import SeaKR
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.entailment import Entailment
from gnothi.signals.probe import Probe
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Capabilities
from tests.messages import refused

RESOURCES = {"model": Scripted({}), "retriever": ScriptedRetriever([])}


def test_names_and_lazy_loading() -> None:
    papers = ("direct", "cot", "rag", "ircot", "seakr", "keqa", "skill_rag", "filco", "crag", "skr", "iekr", "refeed", "gkp")
    more = ("self_consistency", "flare", "react", "searchain", "rowen", "slimplm", "dragin", "self_rag", "adaptive_rag")
    assert set(methods.names()) >= {*papers, *more, "panel", "compose", "search_r1"}
    code = "import sys, gnothi.methods as m; m.names(); print({'torch', 'gnothi.methods.seakr'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "src"})
    assert done.stdout.strip() == "set()"


def test_an_unknown_method_or_setting_lists_the_valid_ones() -> None:
    with refused(UnknownName):
        methods.create("seaker", RESOURCES, {})
    with refused(UnknownName):
        methods.create("rag", RESOURCES, {"threshold": "1"})


def test_settings_are_read_by_type() -> None:
    settings = {
        "threshold": "-5.5",
        "candidates": Given("2", "--set candidates=2"),
        "always_retrieve": "true",
        "signal": "consistency",
        "signal.layer": "none",
        "form": "simple",
        "signal.samples": 7,
    }
    method = methods.create("seakr", RESOURCES, settings)
    assert isinstance(method, SeaKR)
    assert (method.threshold, method.candidates, method.always_retrieve, method.measuring.layer) == (-5.5, 2, True, None)
    assert (method.signal, method.form, method.measuring.samples) == ("consistency", "simple", 7)


@pytest.mark.parametrize(
    "settings",
    [
        {"candidates": "many"},
        {"candidates": "0"},
        {"signal.top_p": "1.5"},
        {"signal": "gramm"},
        {"always_retrieve": "perhaps"},
        {"signal": "energy"},
        {"threshold": "nan"},
    ],
)
def test_bad_settings_say_what_was_expected(settings: dict[str, object]) -> None:
    with refused(InvalidSetting):
        methods.create("seakr", RESOURCES, settings)


def test_a_missing_resource_names_its_flag() -> None:
    with refused(InvalidSetting):
        methods.create("rag", {"model": Scripted({})}, {})
    with refused(InvalidSetting):
        methods.create("direct", {"retriever": None}, {})


def test_what_the_model_lacks_is_said_before_the_first_question_with_a_way_out() -> None:
    resources = {**RESOURCES, "model": Scripted({}, name="text-only", capabilities=Capabilities())}
    with refused(MissingCapability):
        methods.create("seakr", resources, {})
    methods.create("seakr", resources, {"signal": "consistency"})
    methods.create("direct", resources, {})
    with refused(MissingCapability):
        methods.create("cot", resources, {"signal": "perplexity"})


def test_describe() -> None:
    description = methods.describe("seakr")
    assert description.resources == {"model": LanguageModel, "retriever": Retriever}
    assert description.needs == Capabilities(hidden_states=True)
    assert "Yao et al. 2024" in description.source
    settings = {setting.key: setting for setting in description.settings}
    assert next(iter(settings)) == "form"
    assert settings["candidates"].default is None
    assert not any(key.startswith("signal.") for key in settings)
    assert description.shared == ("signal", "calls", "replies")
    shared = {group: {one.key: one.default for one in found} for group, found in methods.shared_settings().items()}
    assert (shared["signal"]["signal.samples"], shared["replies"]) == (20, {"max_tokens": 100, "extract": "gnothi"})
    assert methods.describe("direct").resources == {"model": LanguageModel}


def test_resources_a_method_can_do_without_are_named_like_settings() -> None:
    assert methods.spec("keqa").required == {"model": LanguageModel, "retriever": Retriever}
    optional = methods.spec("keqa").optional
    assert [optional[key] for key in ("judge", "utility_judge", "reader")] == [LanguageModel] * 3
    assert methods.spec("seakr").optional == {
        "signal.probe": Probe,
        "signal.entailment": Entailment,
        "signal.corpus": Retriever,
    }
    settings = methods.spec("keqa").settings
    assert set(settings) >= {"judge", "reference", "alpha", "max_tokens"}
    assert (settings["judge"].default, settings["judge"].type_name) == (None, "text or none")
    assert "none: the main one" in settings["judge"].help
    shared = {"max_tokens", "extra_calls", "extract", "decompose", "max_list_tokens"}
    assert {setting.key for setting in methods.describe("keqa").settings} == set(settings) - shared


def test_resources_a_method_can_do_without() -> None:
    judge = Scripted({}, name="judge")
    with_judge: Any = methods.create("keqa", RESOURCES | {"judge": judge, "reader": None}, {"alpha": "0.6"})
    assert (with_judge.judge, with_judge.reader, with_judge.alpha) == (judge, None, 0.6)


def test_settings_that_fit_no_model_are_known_before_one_is_opened() -> None:
    methods.check(methods.spec("seakr"), {"signal": "energy"})  # a model may be calibrated for it
    methods.check(methods.spec("keqa"), {"references": "random", "reference": "folder"})
    methods.check(methods.spec("skr"), {})
    for name, settings in (
        ("keqa", {"references": "random"}),
        ("compose", {"judge": "lab", "filter": "strinc"}),
        ("crag", {"lower": 0.9}),
        ("seakr", {"signal.samples": 0}),
    ):
        with refused(InvalidSetting):
            methods.check(methods.spec(name), settings)
