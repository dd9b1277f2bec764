"""Everything that is trained, called from Python, without the command line; a scripted model stands in."""

from __future__ import annotations

import asyncio
import importlib
import json
import multiprocessing
import sys
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gnothi.config import Settings
from gnothi.errors import InvalidInput, InvalidSetting, MissingDependency, UnknownName
from gnothi.filtering.reference import HEADER, open_reference
from gnothi.session.plan import Execution
from gnothi.session.watch import Progress
from gnothi.testing.model import Scripted
from gnothi.training import processes
from gnothi.training.collecting import Collecting, Finding, Line
from gnothi.training.job import Job, Sources, asking
from gnothi.training.utility_reference import TrainableReference
from gnothi.types import Question
from tests.command_line import KNOWN, covered_fact
from tests.messages import refused
from tests.runs.fake_ray import FakeRay
from tests.test_imports import HEAVY, loaded_after
from tests.training.recording import RecordingWatch

THINGS = "complexity knowledge_reference probe reader reranker self_knowledge utility_reference".split()
QUESTIONS = [Question("known", KNOWN, ("Ada Bram",)), Question("covered", covered_fact()[2], (covered_fact()[1],))]


class Counting(RecordingWatch):
    """Also keeps what is counted, and what is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[tuple[int, int, str]] = []
        self.waited: list[str] = []
        self.notes: list[str] = []

    def waiting(self, message: str) -> AbstractContextManager[object]:
        self.waited.append(message)
        return nullcontext()

    def counting(self, total: int, done: int, label: str) -> AbstractContextManager[Any]:
        self.counted.append((total, done, label))
        notes = self.notes

        class Noting(Progress):
            def advance(self, failed: bool, note: str = "") -> None:  # noqa: ARG002
                notes.append(note)

        return nullcontext(Noting())


def train(thing: str, *arguments: Any, **given: Any) -> Any:
    return importlib.import_module(f"gnothi.training.{thing}").train(*arguments, **given)


def test_seven_things_and_nothing_heavy() -> None:
    loaded = loaded_after("import " + ", ".join(f"gnothi.training.{thing}" for thing in THINGS))
    assert not {name for name in loaded if name.partition(".")[0] in HEAVY | {"click"}}


def test_from_questions_at_hand(scripted: Scripted, tmp_path: Path) -> None:
    watch = Counting()
    out = tmp_path / "reference"
    made = train("utility_reference", QUESTIONS, str(out), watch=watch, settings={"k": 3, "form": "alone"})
    assert (made.out, made.failed) == (out, 0)
    assert made.figures == json.loads((out / HEADER).read_text())
    assert (made.figures["questions"], made.figures["passages"], made.figures["dataset"]) == (2, 6, "questions")
    assert watch.counted == [(2, 0, "questions")]
    assert watch.waited == ["opening index lab ...", "opening model lab ...", "encoding (lexical) ..."]
    assert all(note.startswith("1 searches, ") and note.endswith(" tokens") for note in watch.notes[:1])
    assert open_reference(str(out)).labelled
    asked, again = len(scripted.prompts), Counting()
    assert train("utility_reference", QUESTIONS, out, watch=again, settings={"k": 3, "form": "alone"}) == made
    assert (len(scripted.prompts), again.counted) == (asked, [])
    with refused(InvalidSetting):
        train("utility_reference", QUESTIONS, out, settings={"k": 2, "form": "alone"})
    with refused(InvalidSetting):
        train("utility_reference", QUESTIONS[:1], out, settings={"k": 3, "form": "alone"})


@pytest.mark.usefixtures("scripted")
def test_findings_that_two_trainings_share(tmp_path: Path) -> None:
    shared = tmp_path / "answers"
    first = train("self_knowledge", "lab-train:one_hop", tmp_path / "a", limit=6, findings=str(shared), collect_only=True)
    assert first.figures["questions"] == 6
    assert (shared / "answers.jsonl").is_file()
    watch = Counting()
    again = train(
        "self_knowledge", "lab-train:one_hop", tmp_path / "b", watch=watch, limit=6, findings=shared, collect_only=True
    )
    assert (again.figures, watch.counted) == (first.figures, [])


@pytest.mark.usefixtures("scripted")
def test_what_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with refused(UnknownName):
        train("reader", QUESTIONS, out, modle="lab")
    with refused(UnknownName):
        train("reader", QUESTIONS, out, settings={"kk": 3})
    with refused(InvalidSetting):
        Job("lab:one_hop", out, Settings())
    with refused(InvalidInput):
        train("probe", [Question("q", "Who?")], out)
    with refused(InvalidSetting):
        train("self_knowledge", QUESTIONS, out, index="lab")
    with refused(InvalidSetting):
        train("reader", QUESTIONS, out, model="openai:gpt")
    with refused(InvalidSetting):
        train("reader", QUESTIONS, out, settings={"adapter": "full", "model.quantize": "4bit"})
    assert not out.exists()


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(
    ("thing", "package"), [("self_knowledge", "trl"), ("reader", "peft"), ("reranker", "sentence_transformers")]
)
def test_nothing_is_found_out_for_a_training_that_cannot_be(
    thing: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gnothi.training.finetuning.find_spec", lambda name: None if name == package else name)
    with refused(MissingDependency):
        train(thing, "lab-train:choice", tmp_path / "out", limit=2)
    assert not (tmp_path / "out").exists()
    assert train(thing, "lab-train:choice", tmp_path / "out", limit=2, collect_only=True).failed == 0


def test_vllm_samples_and_the_library_trains() -> None:
    job = Job("lab-train", Path("out"), Settings(), model="vllm:some/model")
    origin = job.origin(job.plan())
    assert (origin.name, origin.source) == ("vllm:some/model", "some/model")
    assert origin.to_train.pack_weights is False
    lab = Job("lab-train", Path("out"), Settings(), model="vllm:lab")
    assert Path(lab.origin(lab.plan()).source).is_dir()


def test_all_questions_fail(monkeypatch: pytest.MonkeyPatch, scripted: Scripted, tmp_path: Path) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no luck")

    monkeypatch.setattr(scripted, "sample", fails)
    with refused(InvalidInput):
        train("self_knowledge", QUESTIONS, tmp_path, collect_only=True)


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    assert (processes.count(), processes.leads(), processes.share(7, "batch")) == (1, True, 7)
    assert processes.agreed({"score": 0.5}) == {"score": 0.5}
    processes.check()


def test_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert (processes.count(), processes.leads(), processes.share(8, "batch")) == (4, False, 2)
    with refused(InvalidSetting):
        processes.share(6, "setting 'batch'")


def test_weights_that_are_spread_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2")
    processes.check()
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3")
    with refused(InvalidSetting):
        processes.check()
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with refused(InvalidSetting):
        processes.check()


NUMBERS = [Question(f"q{number}", "raise" if number == 3 else f"What is {number}?", ("0",)) for number in range(6)]


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
            sources = Sources(Job("lab-train", out).plan(), RecordingWatch(), stack)
            collecting = stack.enter_context(Halves(out, NUMBERS, {"by": 2}))
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
    for given in ({"on": "slurm"}, {"gpus": 1.0}):
        with refused(InvalidSetting):
            TrainableReference.train_from("lab-train", out, **given)
    with refused(InvalidSetting):
        TrainableReference.train_from("lab-train", out, model="openai:x", index="lab", workers=2)
    assert not out.exists()
