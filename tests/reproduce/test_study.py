from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from gnothi.datasets import is_named
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName, UsageError
from gnothi.metrics import METRICS
from gnothi.reproduce import recipe, study
from gnothi.reproduce.variants import plan_study
from gnothi.session.plan import Request
from tests.messages import refused

TWO: dict[str, Any] = {
    "title": "Two",
    "variant": [
        {"label": "whole", "method": "seakr"},
        {"label": "part", "method": "seakr", "settings": {"rerank": False}, "paper": {"NQ": {"em": 24}}},
    ],
}


def changed(**keys: Any) -> dict[str, Any]:
    return {**TWO, **keys}


def variant(**keys: Any) -> dict[str, Any]:
    return changed(variant=[TWO["variant"][0], {**TWO["variant"][1], **keys}])


# --- reading ---------------------------------------------------------------------------------------------------------


def test_a_study_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(tomli_w.dumps(changed(settings={"max_steps": 3, "model": {"dtype": "float32"}})), encoding="utf-8")
    found = recipe.read(str(file)).study
    assert (found.name, found.title, found.full, found.dataset, found.metric) == ("mine", "Two", "whole", "lab", "em")
    assert found.settings == {"max_steps": 3, "model.dtype": "float32"}
    assert [one.label for one in found.variants] == ["whole", "part"]
    assert found.variant("part").settings == {"rerank": False}
    assert found.variant("part").paper == (study.Figure("NQ", "em", 24.0),)


label = st.text("abcdefgh XYZ−+=0123456789", min_size=1, max_size=12).filter(str.strip)
plain = st.one_of(st.integers(-99, 99), st.booleans(), st.text("abc", max_size=4), st.floats(-5, 5).map(lambda x: round(x, 3)))
key = st.text("abcdefgh_", min_size=1, max_size=8)
figures = st.dictionaries(key, st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, 100), min_size=1), max_size=2)
one = st.fixed_dictionaries(
    {"label": label, "method": key},
    optional={
        "settings": st.dictionaries(key, plain, max_size=3),
        "group": st.text(max_size=9),
        "at": st.floats(0, 9),
        "paper": figures,
    },
)


@given(st.lists(one, min_size=1, max_size=5), st.sampled_from(sorted(METRICS)))
def test_what_is_written_is_read_back(variants: list[dict[str, Any]], metric: str) -> None:
    """Through TOML; labels that would share a folder are refused, everything else comes back as it was."""
    table = tomllib.loads(tomli_w.dumps({"metric": metric, "variant": variants}))
    folders = [study.Variant(one["label"].strip(), "").folder for one in variants]
    if len(set(folders)) < len(folders):
        with pytest.raises(InvalidSetting):
            study.parse(table, "some", "some file")
        return
    found = study.parse(table, "some", "some file")
    assert found.metric == metric
    assert found.full == variants[0]["label"].strip()
    for given_one, read in zip(variants, found.variants, strict=True):
        assert (read.label, read.method) == (given_one["label"].strip(), given_one["method"])
        assert read.settings == given_one.get("settings", {})
        assert read.at == given_one.get("at")
        told = {
            name: {figure.metric: figure.value for figure in read.paper if figure.dataset == name}
            for name in given_one.get("paper", {})
        }
        assert told == given_one.get("paper", {})


@given(st.text(max_size=30))
def test_a_folder_is_named_by_letters_and_digits(text: str) -> None:
    folder = study.Variant(text, "").folder
    assert folder
    assert all(letter.isalnum() or letter == "-" for letter in folder)
    assert Path(folder).name == folder


@pytest.mark.parametrize(
    "table",
    [
        changed(titel="x"),
        changed(title=3),
        changed(metric="emm"),
        changed(full="hole"),
        changed(variant=[]),
        changed(variant=3),
        changed(variant=["x"]),
        changed(axis="k"),
        variant(label="whole"),
        variant(label="Whole!"),
        variant(label=" "),
        variant(lable="x"),
        variant(settings="k=3"),
        variant(at="3"),
        variant(at=True),
        variant(needs={"judge": 3}),
        variant(paper={"NQ": 3}),
        variant(paper={"NQ": {"emm": 3}}),
        variant(paper={"NQ": {"em": "3"}}),
        changed(variant=[{"method": "seakr"}]),
        changed(variant=[{"label": "x"}]),
    ],
)
def test_what_is_not_a_study_is_refused_by_place(table: dict[str, Any]) -> None:
    with refused(UsageError):
        study.parse(table, "mine", "mine.toml")


def test_studies_that_are_not_there(tmp_path: Path) -> None:
    with refused(UnknownName):
        recipe.read("sekr")
    with refused(InvalidInput):
        recipe.read("mine.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("title = ", encoding="utf-8")
    with refused(InvalidInput):
        recipe.read(str(broken))


# --- those that come along -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in recipe.names() if "/" not in name])
def test_packaged_studies_are_valid(name: str) -> None:
    found = recipe.read(name).study
    assert is_named(found.dataset)
    assert found.source
    planned = plan_study(found, Request())
    assert planned.plans.keys() | planned.left_out.keys() == {one.label for one in found.variants}
    for label, plan in planned.plans.items():
        (method,) = plan.methods
        assert method.variant == label
        for key, value in found.variant(label).settings.items():
            assert method.values[key] == (None if value == "none" and key != "references" else value)


@pytest.mark.parametrize("name", [name for name in recipe.names() if "/" not in name])
def test_no_two_variants_of_a_packaged_study_are_the_same(name: str) -> None:
    """The judge that "none" takes away is one that only a user gives."""
    seen = [
        (
            one.method,
            sorted((key, str(value)) for key, value in one.settings.items() if (key, value) != ("judge", "none")),
            list(one.needs),
            one.shift,
        )
        for one in recipe.read(name).study.variants
    ]
    assert all(seen.count(one) == 1 for one in seen)


@pytest.mark.parametrize(("name", "rows"), [("seakr", 9), ("keqa", 6), ("iekr", 4), ("skill_rag", 8)])
def test_the_papers_rows_are_all_there_with_their_figures(name: str, rows: int) -> None:
    found = recipe.read(name).study
    assert sum(bool(one.paper) for one in found.variants) == rows
    assert found.variants[0].label == found.full
    assert found.variants[0].paper
