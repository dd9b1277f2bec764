"""Settings: conversion, layers, dumps."""

from __future__ import annotations

import contextlib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import config
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.protocols import LanguageModel
from gnothi.types import StateSpec
from tests.messages import refused


@dataclass(frozen=True)
class Example:
    model: LanguageModel | None
    k: int = 20
    threshold: float = -6.0
    always: bool = False
    label: str = ""
    mode: Literal["fast", "slow"] = "fast"
    limit: int | None = None
    words: tuple[str, ...] = ()
    pair: tuple[int, float] = (1, 0.5)
    path: Path = Path("a")
    state: StateSpec = field(default=StateSpec(), metadata={"help": "which state"})

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k: got {self.k}, expected at least 1")


TYPES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    str: st.text(),
    Path: st.text(alphabet="ab/._ ,", min_size=1).map(Path),
    Literal["ffn", "residual"]: st.sampled_from(["ffn", "residual"]),
    int | None: st.none() | st.integers(),
    float | None: st.none() | st.floats(allow_nan=False),
    tuple[str, ...]: st.lists(st.text(max_size=5), max_size=3).map(tuple),
    tuple[int, ...]: st.lists(st.integers(), max_size=3).map(tuple),
    tuple[float, bool]: st.tuples(st.floats(allow_nan=False), st.booleans()),
    str | None: st.none() | st.text().filter(lambda text: text.strip().lower() != "none"),
}
typed_values = st.sampled_from(list(TYPES)).flatmap(lambda kind: st.tuples(st.just(kind), TYPES[kind]))


@given(typed_values)
def test_text_round_trip(typed: tuple[Any, Any]) -> None:
    annotation, value = typed
    assert config.convert(config.as_text(value), annotation, "key") == value


@given(st.lists(st.text(max_size=5) | st.integers(), max_size=5))
def test_a_list_reads_as_a_tuple_does(values: list[Any]) -> None:
    assert config.as_text(values) == config.as_text(tuple(values))


@given(st.lists(typed_values, min_size=1, max_size=5))
def test_toml_round_trip(typed: list[tuple[Any, Any]]) -> None:
    keys = [f"section{i % 2}.key{i}" if i % 3 else f"key{i}" for i in range(len(typed))]
    document = config.to_toml({key: value for key, (_, value) in zip(keys, typed, strict=True)})
    flat = config.flatten(tomllib.loads(document))
    assert {key: config.convert(flat[key], kind, key) for key, (kind, _) in zip(keys, typed, strict=True)} == {
        key: value for key, (_, value) in zip(keys, typed, strict=True)
    }


@given(st.text(), st.sampled_from(list(TYPES)))
def test_any_text_converts_or_is_an_invalid_setting(text: str, annotation: Any) -> None:
    with contextlib.suppress(InvalidSetting):
        config.convert(text, annotation, "key")


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (True, int),
        (1.5, int),
        ("1.5", int),
        (True, float),
        ("nan", float),
        (float("nan"), float),
        pytest.param(10**400, float, id="401 digits"),
        pytest.param(10**5000, float, id="5001 digits"),
        ("maybe", bool),
        (3, str),
        ([1], str),
    ],
)
def test_misfits_are_refused(value: object, annotation: Any) -> None:
    with refused(InvalidSetting):
        config.convert(value, annotation, "key")


def test_whole_numbers_are_numbers_and_infinity_is_a_threshold() -> None:
    assert config.convert(3, float, "key") == 3.0
    assert config.convert("-inf", float, "key") == float("-inf")


def test_resources_are_not_settings_and_nested_fields_are() -> None:
    settings = config.settings_of(Example)
    assert "model" not in settings
    assert settings["state.site"].default == "ffn"
    assert settings["limit"].type_name == "a whole number or none"


def test_build_reads_text_and_plain_values() -> None:
    built = config.build(Example, {"k": "3", "state.layer": 2, "words": "a, b", "limit": "none"}, "method example", model=None)
    assert built == Example(None, k=3, words=("a", "b"), state=StateSpec(layer=2))
    assert config.build(Example, config.resolved(built), "method example", model=None) == built


def test_unknown_setting_lists_the_valid_ones() -> None:
    with refused(UnknownName):
        config.build(Example, {"tresh": config.Given("1", "--set tresh=1")}, "method example", model=None)


def test_invalid_values_name_setting_source_and_type() -> None:
    with refused(InvalidSetting):
        config.build(Example, {"k": config.Given("many", "conf.toml")}, "method example", model=None)
    with refused(InvalidSetting):
        config.build(Example, {"k": 0}, "method example", model=None)


def test_layers_override_in_order(tmp_path: Path) -> None:
    path = tmp_path / "conf.toml"
    path.write_text('k = 1\nmode = "slow"\nlabel = "file"\n[model]\ndtype = "float32"\n')
    settings = config.read_settings(
        path, {"GNOTHI_LABEL": "environment", "GNOTHI_K": "2", "GNOTHI_STATE__LAYER": "4", "GNOTHI_DEBUG": "1"}, ["k=3"]
    )
    built = config.build(Example, settings.plain({"model"}), "method example", model=None)
    assert (built.k, built.label, built.mode, built.state.layer) == (3, "environment", "slow", 4)
    assert {key: value.value for key, value in settings.section("model").items()} == {"dtype": "float32"}


def test_malformed_layers_are_errors(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("k = = 1")
    with refused(InvalidInput):
        config.read_settings(broken)
    with refused(InvalidInput):
        config.read_settings(tmp_path / "absent.toml")
    with refused(InvalidSetting):
        config.read_settings(overrides=["k"])


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("k = 3\n", encoding="utf-8-sig")
    assert config.load_toml(tmp_path / "c.toml") == {"k": 3}


@given(st.dictionaries(st.sampled_from(["signal", "signal.samples", "seakr.signal", "seakr.signal.alpha", "k"]), st.text()))
def test_a_signal_and_its_settings_are_one_table_of_a_file(values: dict[str, str]) -> None:
    """TOML has no key that is a text and a table: there, ``signal`` is the ``name`` in the table."""
    assert config.flatten(tomllib.loads(config.to_toml(values))) == values


def test_the_name_in_other_tables_is_a_key() -> None:
    assert config.flatten({"model": {"name": "lab"}, "signal": {"name": "gram", "alpha": 1}}) == {
        "model.name": "lab",
        "signal": "gram",
        "signal.alpha": 1,
    }
