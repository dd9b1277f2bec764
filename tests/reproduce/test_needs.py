"""What a recipe says that it needs is what it opens: every recipe in earnest, with something else behind the doors."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gnothi.protocols import LanguageModel
from gnothi.reproduce import learning, recipe, resources
from gnothi.reproduce.estimate import estimate
from gnothi.reproduce.needs import opens
from gnothi.reproduce.parts import Job, Part, parts
from gnothi.reproduce.variants import PlannedStudy, plan_study
from gnothi.reproduce.work import outlook
from gnothi.retrieval.dense.encoders import Encoder
from gnothi.session.resources import opened
from gnothi.session.watch import SILENT
from gnothi.testing.model import Reply, Scripted
from gnothi.training.job import Sources
from tests.reproduce.doors import recorder

ALL = [name for name in recipe.names() if "/" in name]


def inside(protocol: type) -> Any:
    async def aclose() -> None: ...

    return Scripted(lambda _: Reply("")) if protocol is LanguageModel else SimpleNamespace(aclose=aclose)


def planned(part: Part) -> PlannedStudy:
    return plan_study(part.study, part.request, part.only)


@pytest.mark.parametrize("name", ALL)
def test_needs_are_what_is_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows open their plans; trainings open what finds out about a question. What is then learnt with (a base, an encoder) is
    seen in rehearsals."""
    doors = recorder(monkeypatch, inside)

    async def carry_out(part: Part) -> None:
        for plan in planned(part).plans.values():
            async with opened([plan]):
                pass
        if part.job.recipe.pairs is not None:
            async with opened([learning.labelling(part)]):
                pass
        for training in part.trainings:
            if training.kind in learning.FROM_RUN:
                async with opened([learning.asking(part, training)]):
                    pass
                continue
            async with AsyncExitStack() as stack:
                one = learning.trainable(part, training, (), collect_only=True)
                opening: Any = one.opening(SimpleNamespace(by_name={}))
                await opening(Sources(one.plan, SILENT, stack))

    for part in parts(Job(recipe=recipe.read(name), out=tmp_path, data=tmp_path / "data")):
        doors.clear()
        asyncio.run(carry_out(part))
        bases = {one.given.get("base") for one in part.trainings}
        told = {one for one in opens(part, planned(part)) if one[0] is not Encoder and one[1] not in bases}
        assert told == set(doors)


def titles(name: str, tmp_path: Path, *only: str, data: bool = False) -> dict[str, Any]:
    found = outlook(Job(recipe=recipe.read(name), out=tmp_path, only=only, data=tmp_path if data else None))
    return {one.title: one for one in found.needs}


@pytest.mark.parametrize("name", ["iekr/table5", "iekr/table7", "iekr/table10"])
def test_what_one_data_set_has_of_its_own_is_needed(name: str, tmp_path: Path) -> None:
    told = titles(name, tmp_path)
    medical = {"the Disease Database part of UMLS with DrugBank (the paper counts 9,958 nodes, 44,561 edges)", "Llama-2-7B"}
    general = {"ConceptNet 5.7, English (the paper counts 799,273 nodes and 2,487,810 edges)", "Flan-T5 (3B)"}
    assert medical <= told.keys()
    assert all(told[one].gated for one in medical)
    assert bool(general & told.keys()) == (name != "iekr/table5")
    assert medical.isdisjoint(titles(name, tmp_path, "csqa") if name != "iekr/table5" else {})


def test_a_gated_judge_is_lacking_until_somebody_signs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.reproduce.needs.version_of", lambda _: "")
    for token in (None, "any"):
        monkeypatch.setattr("huggingface_hub.get_token", lambda token=token: token)
        judge = titles("keqa/table1", tmp_path, "nq-dev", data=True)["Llama-2-7B-chat"]
        assert judge.gated
        assert not judge.here
        assert bool(judge.lacking) == (token is None)


def test_only_the_rows_asked_for_need_something(tmp_path: Path) -> None:
    every, one = (titles("seakr/table1", tmp_path, *only) for only in ((), ("DRAGIN", "iirc")))
    assert "Self-RAG (7B)" in every
    assert set(every) - set(one) == {"2WikiMultiHopQA", "HotpotQA", "Self-RAG (7B)"}


@pytest.mark.parametrize("name", ALL)
def test_everything_needed_is_described_and_counted(name: str, tmp_path: Path) -> None:
    found = outlook(Job(recipe=recipe.read(name), out=tmp_path))
    assert all(need.home and need.licence and not need.title.startswith("the encoder ") for need in found.needs)
    assert found.gigabytes > 1
    assert found.disk >= found.gigabytes
    cost = found.estimate
    assert cost is not None
    assert cost.hours
    assert cost.dollars is not None
    assert (cost.dollars > 0) == any(need.home == "https://platform.openai.com" for need in found.needs)


@pytest.mark.parametrize("name", [name for name in ALL if recipe.read(name).trainings])
def test_training_counts(name: str, tmp_path: Path) -> None:
    found = parts(Job(recipe=recipe.read(name), out=tmp_path, data=tmp_path / "data"))
    plans = {part.name: planned(part) for part in found}
    with_training = estimate(found, plans, None)
    without = estimate([replace(part, trainings=()) for part in found], plans, None)
    assert with_training.tokens > without.tokens


def test_every_data_set_says_how_many_questions_it_has() -> None:
    for (kind, _), one in resources._read().items():
        if kind == "data":
            assert one.count
            assert bool(one.count_training) == bool(one.training)
        if kind == "model":
            assert one.price or (one.billions and one.gigabytes)


def test_only_what_the_rows_asked_for_name_is_learnt(tmp_path: Path) -> None:
    for only, names in {
        (): ["judge", "reader", "backbone", "reader-ours"],
        ("csqa",): ["judge", "reader", "backbone", "reader-ours"],
        ("IEKR",): ["judge", "reader"],
        ("GKP", "csqa"): ["judge", "reader", "backbone"],
        ("IEKR (ours)",): ["judge", "reader", "reader-ours"],
    }.items():
        found = parts(Job(recipe=recipe.read("iekr/table1"), out=tmp_path, data=tmp_path, only=only))
        assert [one.name for one in found[0].trainings] == names


def test_where_a_row_is_left_out_only_the_full_method_runs(tmp_path: Path) -> None:
    found = parts(Job(recipe=recipe.read("seakr/table3"), out=tmp_path, data=tmp_path, only=("Rationales-only",)))
    assert {part.name: list(planned(part).plans) for part in found} == {
        "2wiki": ["SeaKR", "Rationales-only"],
        "hotpotqa": ["SeaKR", "Rationales-only"],
        "nq": ["SeaKR"],
    }
