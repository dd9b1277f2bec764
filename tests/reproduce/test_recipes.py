"""Every recipe: it parses, its methods and settings exist, and it stands in the page of its paper with everything it says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, UnknownName
from gnothi.methods import registry as methods
from gnothi.methods import spec
from gnothi.reproduce import recipe, resources
from gnothi.reproduce.learning import FROM_RUN, _kind
from gnothi.reproduce.parts import Job, parts
from gnothi.reproduce.rendering import listing
from gnothi.reproduce.work import check
from tests.messages import refused

PAGES = Path(__file__).parents[2] / "docs" / "papers"
ALL = [name for name in recipe.names() if "/" in name]


def rehearsal(name: str, tmp_path: Path) -> Job:
    return Job(recipe=recipe.read(name), out=tmp_path / "out", rehearse=True)


def in_earnest(name: str, tmp_path: Path) -> Job:
    return Job(recipe=recipe.read(name), out=tmp_path / "out", data=tmp_path / "data")


@pytest.mark.parametrize("name", ALL)
def test_methods_settings_and_models_exist(name: str, tmp_path: Path) -> None:
    """Planned as for a run: in earnest, and one data set in a rehearsal."""
    rehearsed = rehearsal(name, tmp_path)
    check(replace(rehearsed, only=(rehearsed.recipe.data[0].name,)))
    check(in_earnest(name, tmp_path))
    found = recipe.read(name)
    assert resources.model(str(found.study.model)), f"{name}: {found.study.model} is not described in resources.toml"
    for row in found.study.variants:
        assert row.method in methods.METHODS
        assert row.model is None or resources.model(row.model)
        assert set(found.rows[row.label].rehearse) <= set(spec(row.method).settings)


@pytest.mark.parametrize("name", ALL)
def test_trainings_exist_and_are_used(name: str, tmp_path: Path) -> None:
    found = recipe.read(name)
    for part in parts(rehearsal(name, tmp_path)):
        every = [part.study.settings, *(row.settings for row in part.study.variants), *(one.settings for one in part.trainings)]
        used = {str(value) for settings in every for value in settings.values()}
        for training in part.trainings:
            assert training.kind in FROM_RUN or _kind(training.kind)
            assert str(part.learnt(training)) in used, f"{name}: nobody uses {training.name}"
    assert not found.trainings or all(source.training for source in found.data if not found.trainings[0].given.get("data"))


@pytest.mark.parametrize("name", ALL)
def test_figures_are_of_the_recipes_data_sets_and_no_row_is_without_them_by_mistake(name: str) -> None:
    found = recipe.read(name)
    data = {source.name for source in found.data}
    for row in found.study.variants:
        own = {figure.dataset for figure in row.paper}
        assert own <= data
        assert set(found.rows[row.label].without) <= data - own
        for figure in row.paper:
            if figure.metric in ("em", "f1", "accuracy"):
                assert 0 < figure.value <= (100 if found.percent else 1)
            else:
                assert figure.value > 0
    assert set(found.on) <= data
    assert not any(row.calibrate for row in found.rows.values()) or found.calibration


@pytest.mark.parametrize("name", recipe.papers())
def test_every_element_stands_in_its_page(name: str) -> None:
    paper = recipe.papers()[name]
    page = " ".join((PAGES / paper["page"]).read_text(encoding="utf-8").split())
    for one in map(recipe.read, ALL):
        if one.paper == name:
            assert f"`gnothi reproduce {one.name}`" in page
            for element in one.covers:
                assert re.search(rf"[|;] {element}[ ;,|]", page), f"{element} is not in {paper['page']}"
    for element, reason in paper["left_out"].items():
        if reason not in ("a drawing", "a prompt"):
            assert re.search(rf"\b{element}\b", page), f"{element} is not in {paper['page']}"


def test_elements_are_counted_once_and_completely() -> None:
    numbers = {"seakr": (12, 7), "keqa": (6, 5), "skill-rag": (1, 1), "iekr": (12, 2)}
    for name, (tables, figures) in numbers.items():
        known = {element for one in map(recipe.read, ALL) if one.paper == name for element in one.covers}
        known |= set(recipe.papers()[name]["left_out"])
        assert known == {*(f"table {n + 1}" for n in range(tables)), *(f"figure {n + 1}" for n in range(figures))}


def test_a_recipe_is_found_by_each_of_its_elements() -> None:
    assert recipe.read("seakr/table9").name == "seakr/table8"
    assert recipe.read("iekr/table2").name == "iekr/table1"
    assert recipe.read("skill-rag/table1").name == "skill-rag/table1"
    with refused(InvalidInput):
        recipe.read("keqa/table6")
    with refused(UnknownName):
        recipe.read("seakr/tabel1")


@pytest.mark.parametrize("name", ALL)
def test_the_listing_says_all_that_is_needed(name: str) -> None:
    told = listing(recipe.read(name))
    assert all(one["home"].startswith("https://") and one["get"] and one["licence"] for one in told["data"])
    assert all(told[key] for key in ("rows", "note", "covers"))


def test_both_backbones_of_skill_rag_are_asked_the_same() -> None:
    one, other = (recipe.read(name).study for name in ("skill-rag/table1", "skill-rag/table1-qwen3"))
    assert [(row.label, row.method, row.settings) for row in one.variants] == [
        (row.label, row.method, row.settings) for row in other.variants
    ]
