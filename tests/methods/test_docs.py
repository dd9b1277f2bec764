"""Every method stands in the guide, and every setting beside the number of its paper."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from gnothi import config, methods
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.settings import Measuring
from gnothi.models.settings import ModelSettings
from gnothi.reproduce import recipe
from gnothi.training.knowledge_reference import KnowledgeSettings
from gnothi.training.reader.stages import ReaderTraining
from gnothi.training.self_knowledge.settings import SelfKnowledgeSettings

ROOT = Path(__file__).parents[2]
READER = {item.name for item in fields(ReaderSettings)}  # shared; they stand beside those of skill_rag


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_in_the_guide(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "how-to" / "choose-a-method.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("seakr", {"reason", "query"}),
        ("keqa", set()),
        ("skill_rag", set()),
        ("filco", READER),
        ("crag", READER),
        ("skr", READER),
        ("iekr", {"retriever"}),
        ("refeed", READER),
        ("gkp", READER),
        ("self_consistency", set()),
        ("flare", set()),
        ("react", set()),
        ("search_r1", set()),
        ("quco_rag", set()),
        ("searchain", set()),
        ("rowen", READER),
        ("slimplm", READER),
        ("self_rag", READER),
        ("dragin", set()),
        ("adaptive_rag", READER),
    ],
)
def test_every_setting_stands_beside_the_papers_number(name: str, left_out: set[str]) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "papers").glob("*.md"))
    ours = (
        {item.name for item in fields(cast("Any", methods.spec(name).method))} - {"model", "retriever", "measuring"} - left_out
    )
    ours |= {item.name for item in fields(Measuring)} - {"probe"} if name == "seakr" else set()
    assert not {one for one in ours if not re.search(rf"`[^`]*\b{one}\b[^`]*`", text)}


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "papers").glob("*.md")), ids=lambda page: page.stem)
def test_the_packages_files_and_recipes_that_papers_pages_name_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file in re.findall(r"`(gnothi/[\w/.-]+)`", text):
        assert (ROOT / "src" / file).exists(), file
    for name in re.findall(r"`gnothi reproduce ([\w/-]+)`", text):
        recipe.read(name)


@pytest.mark.parametrize("page", ["skill-rag", "iekr"])
def test_settings_that_papers_pages_name_exist(page: str) -> None:
    trainings: tuple[type, ...] = (SelfKnowledgeSettings, ReaderTraining, KnowledgeSettings, ModelSettings)
    known = {key for one in trainings for key in config.settings_of(one)} | {"metric"}
    known |= {f"model.{key}" for key in ("renderer", "demonstrations", "passages")}
    known |= {key for name in methods.names() for key in methods.spec(name).settings}
    text = (ROOT / "docs" / "papers" / f"{page}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:--set )?([a-z_.]+)=[^`]*`", text))
    named |= set(re.findall(r"^\|[^|]*\| `([a-z_.]+)`: ", text, re.MULTILINE))
    bare = {key.partition(".")[2] if key.partition(".")[0] in methods.names() else key for key in named} - {""}
    assert bare - known == set()
    assert len(bare) > 12
