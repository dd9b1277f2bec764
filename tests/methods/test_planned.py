"""From what was given to methods with typed values: once, and to those alone that have a use for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi import config, methods
from gnothi.config import read_settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.methods.planned import PlannedMethod, plan_methods
from gnothi.session.plan import Request, resolve
from gnothi.session.resources import Opened
from gnothi.signals import registry
from gnothi.signals.registry import settings_of
from gnothi.signals.stopping import KEY as STOPPING
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from tests.messages import refused


def planned(names: str, *overrides: str) -> tuple[PlannedMethod, ...]:
    return plan_methods(names.split(","), read_settings(overrides=overrides))


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a value was converted, by key."""
    counted: Counter[str] = Counter()
    convert = config.convert

    def counting(value: object, annotation: Any, key: str, source: str = "") -> Any:
        counted[key] += 1
        return convert(value, annotation, key, source)

    monkeypatch.setattr(config, "convert", counting)
    return counted


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("rag", {"k": "5"}),
        ("rag", {"k": "5", "signal": "gram", "signal.samples": "3", "signal.layer": "0"}),
        ("keqa", {"tries": "3", "alpha": "0.6"}),
        ("compose", {"gate": "consistency", "gate_threshold": "0.3", "signal.temperature": "0.7"}),
    ],
)
def test_a_text_is_converted_once_from_the_request_to_the_method(
    converted: Counter[str], method: str, settings: dict[str, str]
) -> None:
    given = read_settings(overrides=[f"{key}={value}" for key, value in settings.items()])
    plan = resolve(Request(methods=[method], model=Scripted({}), index=ScriptedRetriever([]), settings=given))
    ready = Opened(plan.sources.model, ScriptedRetriever([])).method(plan.methods[0])
    assert converted == dict.fromkeys(settings, 1)
    assert asyncio.run(_nothing(ready)) == method


async def _nothing(method: Any) -> str:
    return str(method.name)


def test_a_python_keyword_is_converted_once(converted: Counter[str]) -> None:
    with gnothi.open("rag", k="5", signal={"name": "gram", "samples": 3}) as rag:
        assert (rag.settings["k"], rag.settings["signal.samples"]) == (5, 3)
    assert converted == {"k": 1, "signal": 1, "signal.samples": 1}


@pytest.mark.parametrize("name", registry.names())
def test_a_signal_has_its_settings_and_no_others(name: str) -> None:
    keys, given = settings_of(name), [f"signal={name}"]
    probe = ["signal.probe=lab"] if registry.reads_probe(name) else []
    (method,) = planned("rag", *given, *probe)
    assert {key for key in method.values if key.startswith("signal.")} - {STOPPING} == set(keys)
    for key, setting in methods.spec("rag").settings.items():
        if key.startswith("signal.") and key not in keys and setting.typed:
            value = config.as_text(setting.default) if key != "signal.probe" else "lab"
            with refused(InvalidSetting):
                planned("rag", *given, *probe, f"{key}={value}")


OTHERS = {
    "rag.k": "3",
    "server.port": "80",
    "seakr.max_steps": "2",
    "signal.samples": "3",
    "k": "3",
    "model.base_url": "http://localhost",
}
"""Settings that exist, and that `direct` with the laboratory's model has no use for."""


@pytest.mark.parametrize("key", OTHERS)
def test_what_nothing_has_a_use_for_stops_the_command_that_it_was_given_to_and_no_other(tmp_path: Path, key: str) -> None:
    (tmp_path / "settings.toml").write_text(config.to_toml({key: OTHERS[key]}))
    environment = {f"GNOTHI_{key.upper().replace('.', '__')}": OTHERS[key]}
    for settings in (read_settings(tmp_path / "settings.toml"), read_settings(environ=environment)):
        (method,) = resolve(Request(methods=["direct"], settings=settings)).methods
        assert not method.given
    with refused((InvalidSetting, UnknownName)):
        resolve(Request(methods=["direct"], settings=read_settings(overrides=[f"{key}={OTHERS[key]}"])))


@pytest.mark.parametrize("key", ["kk", "signal.sample", "model.base_uri"])
def test_what_nothing_at_all_has_is_refused_wherever_it_was_given(key: str) -> None:
    with pytest.raises(UnknownName):
        resolve(Request(methods=["direct"], settings=read_settings(environ={f"GNOTHI_{key.upper().replace('.', '__')}": "1"})))


def test_a_plain_one_goes_to_the_methods_whose_signal_has_it() -> None:
    direct, seakr = planned("direct,seakr", "signal.samples=5")
    assert "signal.samples" not in direct.values
    assert seakr.values["signal.samples"] == 5
    with refused(InvalidSetting):
        planned("direct,seakr", "direct.signal.samples=5")
    with refused(InvalidSetting):
        planned("direct,rag", "signal.samples=5")


def test_a_run_is_repeated_with_another_signal(tmp_path: Path) -> None:
    """What its record says of the signal that it had is no mistake."""
    file = tmp_path / "config.toml"
    file.write_text(config.to_toml({"seakr.signal": "gram", "seakr.signal.samples": 4, "signal.top_k": 3}))
    (seakr,) = plan_methods(["seakr"], read_settings(file))
    assert (seakr.values["signal"], seakr.values["signal.samples"], seakr.values["signal.top_k"]) == ("gram", 4, 3)
    (seakr,) = plan_methods(["seakr"], read_settings(file, overrides=["signal=perplexity"]))
    assert not any(key.startswith("signal.") for key in seakr.values)


def test_a_misspelt_one_is_told_those_of_signals() -> None:
    with pytest.raises(UnknownName) as refused:
        planned("seakr", "signal.smaples=5")
    assert all(key.startswith("signal.") for key in refused.value.valid)


def test_a_plain_key_is_that_of_signals_where_no_method_has_it() -> None:
    (seakr,) = planned("seakr", "samples=5")
    assert seakr.values["signal.samples"] == 5
    seakr, keqa = planned("seakr,keqa", "alpha=0.5", "signal.alpha=0.01")
    assert (seakr.values["signal.alpha"], keqa.values["alpha"]) == (0.01, 0.5)


def test_a_method_that_measures_every_signal_has_all_of_them() -> None:
    every = {key for name in registry.names() for key in settings_of(name)}
    assert {key for key in planned("panel")[0].values if key.startswith("signal.")} == every | {STOPPING}


@pytest.mark.parametrize("name", [STOPPING, f"seakr.{STOPPING}"])
def test_a_rule_for_drawing_samples_is_a_runs_and_written_by_nobody(tmp_path: Path, name: str) -> None:
    """That of a run, or a calibration."""
    file, rule = tmp_path / "config.toml", "2: 0.1 0.2 0.0"

    def repeated(*overrides: str) -> object:
        found = read_settings(file, overrides=overrides, repeated=lambda values: values)
        return plan_methods(["seakr"], found)[0].values[STOPPING]

    file.write_text(config.to_toml({name: rule, "seakr.threshold": -5.0}), "utf-8")
    assert repeated() == rule
    assert repeated("max_steps=3", "rerank=false") == rule
    # It goes with the threshold and the settings that it was chosen for.
    for override in ("threshold=-4", "signal=consistency", "signal.samples=10", "seakr.alpha=0.1", "form=simple"):
        assert repeated(override) is None
    for settings in (read_settings(file), read_settings(overrides=[f"{name}=none"])):
        with pytest.raises(UnknownName) as refused:
            plan_methods(["seakr"], settings)
        assert STOPPING not in refused.value.valid
    assert STOPPING not in [one.key for group in methods.shared_settings().values() for one in group]


@pytest.mark.parametrize("key", ["samples", "seakr.samples", "seakr.signal.samples", "signal.samples"])
def test_a_setting_of_signals_is_found_by_each_of_its_names(key: str) -> None:
    (seakr,) = planned("seakr", f"{key}=5", "signal.name=consistency")
    assert (seakr.values["signal"], seakr.values["signal.samples"]) == ("consistency", 5)
