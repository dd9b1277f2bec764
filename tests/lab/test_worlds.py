"""Worlds by name: seeds, files, and the folders of models that were trained in one."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi import lab
from gnothi.errors import InvalidInput, UnknownName, UsageError
from gnothi.lab import worlds
from gnothi.lab.world import Grid, build_world
from gnothi.models import LAB_FOLDER
from tests.messages import refused


def model_of(world: lab.World, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "gnothi.json").write_text(json.dumps({"world": worlds.declaration(world)}), "utf-8")
    return folder


def test_a_seed_names_its_world() -> None:
    assert worlds.find("1") == build_world(1)
    assert worlds.find("") == worlds.find("0") == lab.world()
    assert lab.world("1").facts != lab.world().facts


def test_the_shipped_models_are_of_the_built_in_world() -> None:
    assert worlds.of_folder(LAB_FOLDER) == lab.world()
    assert worlds.of_folder(LAB_FOLDER.parent / "reader") == lab.world()


def test_a_models_folder_names_the_world_it_learnt(tmp_path: Path) -> None:
    other = build_world(3, Grid(often=0.5, seldom=0.2))
    assert worlds.find(str(model_of(other, tmp_path))) == other


def test_a_file_names_a_world_of_other_shares(tmp_path: Path) -> None:
    file = tmp_path / "covered.toml"
    file.write_text("seed = 0\nsteps = 10\n[grid]\ncovered = 1\nabsent = 0\ncontradicted = 0\nambiguous = 0\n", "utf-8")
    covered = worlds.find(str(file))
    assert {entity.coverage for entity in covered.entities.values()} == {"covered"}
    assert covered.fingerprint == lab.world().fingerprint, "another library about the same facts"
    assert lab.passages(covered) != lab.passages()


@settings(max_examples=4)
@given(seed=st.integers(0, 50), often=st.floats(0, 0.7), covered=st.floats(0, 0.64))
def test_the_library_leaves_what_a_model_learns_as_it_is(seed: int, often: float, covered: float) -> None:
    shares = {"often": often, "seldom": 0.7 - often}
    library = {"covered": covered, "absent": 0.72 - covered}
    plain, changed = build_world(seed, Grid(**shares)), build_world(seed, Grid(**shares, **library))
    assert plain.fingerprint == changed.fingerprint
    assert plain.facts == changed.facts
    assert build_world(seed + 1, Grid(**shares)).fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "seed = 1\n[grid]\noften = 0.9\n",
        "seed = 1\n[grid]\nofen = 0.6\n",
        "seed = -1\n",
        "seed = true\n",
        "grid = 4\nseed = 1\n",
        "[grid]\noften = 0.6\n",
        "seed",
    ],
)
def test_a_file_that_says_no_world_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "world.toml"
    file.write_text(text, "utf-8")
    with refused(InvalidInput):
        worlds.find(str(file))


@pytest.mark.parametrize("name", ["one", "-1", "1.5", "9" * 12, "no/such/folder"])
def test_what_names_no_world_is_refused(name: str) -> None:
    with refused(UnknownName):
        worlds.find(name)


def test_a_folder_without_such_a_model_is_refused(tmp_path: Path) -> None:
    assert worlds.of_folder(tmp_path) is None
    with refused(InvalidInput):
        worlds.find(str(tmp_path))


def test_a_model_that_learnt_other_facts_is_refused(tmp_path: Path) -> None:
    folder = model_of(build_world(2), tmp_path)
    said = json.loads((folder / "gnothi.json").read_text("utf-8"))
    said["world"]["facts"] = "0" * 16
    (folder / "gnothi.json").write_text(json.dumps(said), "utf-8")
    with refused(InvalidInput):
        worlds.of_folder(folder)


@settings(max_examples=25)
@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_any_declaration_is_a_world_none_or_refused(tmp_path_factory: pytest.TempPathFactory, said: object) -> None:
    folder = tmp_path_factory.mktemp("model")
    (folder / "gnothi.json").write_text(json.dumps({"world": said}), "utf-8")
    with contextlib.suppress(UsageError):
        worlds.of_folder(folder)


def test_names_come_back() -> None:
    assert worlds.name_of(lab.world(), "folder") == ""
    assert worlds.name_of(lab.world("7"), "folder") == "7"
    assert worlds.name_of(build_world(7, Grid(often=0.5, seldom=0.2)), "folder") == "folder"
