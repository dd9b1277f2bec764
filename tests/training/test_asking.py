"""Training questions asked in other processes: the lines of one process."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from gnothi.errors import InvalidSetting
from gnothi.session.plan import Execution
from gnothi.training.asking import asking
from gnothi.training.collecting import Collecting, Finding, Line
from gnothi.training.job import Job, Sources
from gnothi.training.utility_reference.job import TrainableReference
from gnothi.types import Question
from tests.runs.fake_ray import FakeRay
from tests.training.heard import Heard

QUESTIONS = [Question(f"q{number}", "raise" if number == 3 else f"What is {number}?", ("0",)) for number in range(6)]


class Halves(Collecting):
    file, what, why = "halves.jsonl", "folder of halves", "there is nothing to halve"


async def halving(sources: Sources, by: int) -> Finding:
    assert sources.plan.sources.model == "lab"

    async def find(question: Question) -> Line:
        if question.text == "raise":
            raise ValueError("a reason")
        return {"half": len(question.text) / by}

    return find


def collected(out: Path, **execution: object) -> list[Line]:
    async def run() -> list[Line]:
        async with AsyncExitStack() as stack:
            sources = Sources(Job("lab-train", out).plan(), Heard(), stack)
            collecting = stack.enter_context(Halves(out, QUESTIONS, {"by": 2}))
            how = Execution(**execution)  # type: ignore[arg-type]
            async with asking(partial(halving, by=2), sources, how, len(collecting.missing)) as (line_of, under_way):
                assert under_way is None
                await collecting.collect_lines(line_of)
            return collecting.in_order()

    return asyncio.run(run())


def test_other_processes_find_out_the_same(tmp_path: Path) -> None:
    alone, several = collected(tmp_path / "alone"), collected(tmp_path / "several", workers=2)
    assert alone == several
    failed = {line["question_id"]: line["error"] for line in several if "error" in line}
    assert failed == {"q3": {"type": "ValueError", "message": "a reason"}}
    assert not multiprocessing.active_children()


def test_a_cluster_finds_out_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray := FakeRay())
    assert collected(tmp_path / "ray", workers=2, on="ray") == collected(tmp_path / "alone")
    assert (len(ray.actors), all(one.dead for one in ray.actors)) == (2, True)


def test_what_cannot_be_is_refused_before_there_is_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for given, message in (({"on": "slurm"}, "on: got 'slurm'"), ({"gpus": 1.0}, "gpus: got 1 without a cluster")):
        with pytest.raises(InvalidSetting, match=message):
            TrainableReference.train_from("lab-train", out, **given)
    with pytest.raises(InvalidSetting, match="workers: got 2 with a model behind an API"):
        TrainableReference.train_from("lab-train", out, model="openai:x", index="lab", workers=2)
    assert not out.exists()
