"""A model of a laboratory's world is asked about that one, with its library and its graph."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.lab import worlds
from gnothi.lab.world import Grid, World, build_world
from gnothi.models import LAB_FOLDER
from gnothi.session import worlds as own_worlds
from gnothi.session.data import load_questions
from gnothi.session.plan import Request, resolve, with_questions
from tests.messages import refused


@pytest.fixture
def other(tmp_path: Path) -> str:
    """The lab's model, which says that it is of world 1."""
    return _model(tmp_path / "other", build_world(1))


def _model(folder: Path, world: World) -> str:
    shutil.copytree(LAB_FOLDER, folder)
    said = json.loads((folder / "gnothi.json").read_text("utf-8"))
    (folder / "gnothi.json").write_text(json.dumps(said | {"world": worlds.declaration(world)}), "utf-8")
    return str(folder)


def test_its_own_library_is_the_default(other: str, tmp_path: Path) -> None:
    assert resolve(Request(["rag"], other)).sources.index == "lab:1"
    assert resolve(Request(["rag"], f"vllm:{other}")).sources.index == "lab:1"
    assert resolve(Request(["rag"], "lab")).sources.index == "lab"
    assert resolve(Request(["rag"], "lab-reader")).sources.index == "lab"
    special = _model(tmp_path / "special", build_world(4, Grid(often=0.5, seldom=0.2)))
    assert resolve(Request(["rag"], special)).sources.index == f"lab:{special}"


def test_a_model_of_no_such_world_takes_any(tmp_path: Path) -> None:
    shutil.copytree(LAB_FOLDER, tmp_path / "free")
    (tmp_path / "free" / "gnothi.json").write_text('{"renderer": "tagged"}', "utf-8")
    plan = resolve(Request(["rag"], str(tmp_path / "free"), "lab:1"))
    assert with_questions(plan, "lab:2", limit=1).questions.dataset == "lab:2"
    assert own_worlds.own("openai:lab") is None
    assert own_worlds.own("nonsense:lab") is None


@pytest.mark.parametrize(("key", "spec"), [("index", "lab"), ("index", "lab:2"), ("graph", "lab"), ("index", "graph:lab")])
def test_the_library_of_another_world_is_refused(other: str, key: str, spec: str) -> None:
    given: Any = {key: spec}
    with refused(InvalidSetting):
        resolve(Request(["rag"], other, **given))


def test_another_library_about_the_same_facts_is_taken(other: str, tmp_path: Path) -> None:
    file = tmp_path / "covered.toml"
    file.write_text("seed = 1\n[grid]\ncovered = 1\nabsent = 0\ncontradicted = 0\nambiguous = 0\n", "utf-8")
    plan = resolve(Request(["rag"], other, f"lab:{file}"))
    assert with_questions(plan, f"lab:{file}", limit=3).questions.questions[0].metadata["coverage"] == "covered"


@pytest.mark.parametrize(
    ("spec", "instead"), [("lab", "lab:1"), ("lab-train:2:one_hop", "lab-train:1:one_hop"), ("lab:choice", "lab:1:choice")]
)
def test_questions_about_another_world_are_refused(other: str, spec: str, instead: str) -> None:
    plan = resolve(Request(["rag"], other))
    with refused(InvalidSetting):
        with_questions(plan, spec, limit=1)
    assert len(with_questions(plan, instead, limit=3).questions.questions) == 3


def test_its_own_documents_and_questions_are_taken(other: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "1", "question": "Who?", "answers": ["Ada"]}\n', "utf-8")
    plan = with_questions(resolve(Request(["rag"], other, str(tmp_path / "index"))), str(file))
    assert plan.questions.questions[0].text == "Who?"
    assert "makes up the rest" in plan.warnings[-1]


def test_questions_that_its_model_cannot_know_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "1", "question": "Who?", "answers": ["Ada"]}\n', "utf-8")
    (warning,) = with_questions(resolve(Request(["direct"])), str(file)).warnings
    assert "1 question not of the laboratory" in warning
    assert not with_questions(resolve(Request(["direct"])), "lab", limit=2).warnings
    assert not with_questions(resolve(Request(["direct"], "openai:gpt")), str(file)).warnings


def test_questions_and_training_questions_of_a_seed() -> None:
    assert load_questions("lab:0:two_hop", limit=5) == load_questions("lab:two_hop", limit=5)
    assert load_questions("lab:1", limit=5) != load_questions("lab", limit=5)
    tested = {hop["subject"] + hop["relation"] for one in load_questions("lab:1") for hop in one.metadata["hops"]}
    learnt = {hop["subject"] + hop["relation"] for one in load_questions("lab-train:1") for hop in one.metadata["hops"]}
    assert not tested & learnt


@pytest.mark.parametrize("spec", ["lab:three_hop", "lab:1:three_hop", "lab:x:two_hop"])
def test_a_misspelt_part_is_refused(spec: str) -> None:
    with refused(UnknownName):
        load_questions(spec)


def test_a_folder_that_says_no_world_is_refused(tmp_path: Path) -> None:
    with refused(InvalidInput):
        load_questions(f"lab:{tmp_path}")
