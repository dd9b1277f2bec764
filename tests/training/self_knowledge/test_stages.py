"""A training on the laboratory's model: the model it ends with, kills, collapse; and the rules in between."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi import lab
from gnothi.cli.main import main
from gnothi.errors import InvalidInput, InvalidSetting, TrainingCollapsed
from gnothi.models import LAB_FOLDER, ModelSettings
from gnothi.training.curve import CURVES, draw_curves
from gnothi.training.finetuning import HEADER, METRICS, Origin
from gnothi.training.self_knowledge.answers import Familiar
from gnothi.training.self_knowledge.reward import NO, Correctness
from gnothi.training.self_knowledge.settings import TrainingSettings
from gnothi.training.self_knowledge.stages import FAMILIARITY, PANELS, collapsed, draw_familiarity, order, replies, split, train
from gnothi.types import Question
from tests.messages import refused
from tests.ports import held_port
from tests.training import launched
from tests.training.launched import killed_three_times
from tests.training.recording import recorded

ROOT = Path(__file__).parents[3]
ORIGIN = Origin("lab", str(LAB_FOLDER), ModelSettings())
QUICK = TrainingSettings(steps=6, questions=4, replies=4, warm_start_steps=3, warm_start_batch=8, evaluate_every=2)


def familiar_examples(count: int = 40) -> list[Familiar]:
    """Questions with what the shipped model knows of them, as the laboratory has it."""
    return [
        Familiar(question, (question.answers[0],) * 4, (question.metadata["familiarity"] != "never",) * 4)
        for question in lab.training_questions(lab.world(), "one_hop", count)
    ]


# --- rules ---------------------------------------------------------------------------------------------------------


def test_the_split_keeps_both_kinds_and_depends_on_the_seed() -> None:
    everything = familiar_examples()
    training, validation = split(everything, QUICK)
    assert len(training) + len(validation) == 40
    assert 4 <= len(validation) <= 8
    for part in (training, validation):
        assert {one.known for one in part} == {True, False}
    assert split(everything, QUICK) == (training, validation)
    assert split(everything, replace(QUICK, seed=1)) != (training, validation)


def test_nothing_to_tell_apart() -> None:
    with refused(InvalidInput):
        split([Familiar(Question(str(n), "Who?", ("x",)), ("x",), (True,)) for n in range(5)], QUICK)


def test_checkpoints_are_between_samplings() -> None:
    with refused(InvalidSetting):
        replace(QUICK, evaluate_every=4, updates=3)


def test_collapse() -> None:
    def line(yes: float, neither: float = 0.0) -> dict[str, float]:
        return {"no": float(yes < 0.5), "neither": neither, "yes_known": yes, "yes_unknown": yes - 0.01}

    assert collapsed([line(0.5), line(0.01), line(0.0)], 2) == "No"
    assert collapsed([line(0.992), line(0.999)], 2) == "Yes"
    assert collapsed([line(0.6, 1.0)], 1) == "neither Yes nor No"
    assert collapsed([line(0.9), line(0.95)], 2) is None  # all Yes, but No is still sampled
    assert collapsed([line(0.0), line(1.0)], 2) is None
    assert collapsed([line(0.0)], 2) is None


# --- a training ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        replace(QUICK, clip=0.9),
        replace(QUICK, adapter="full", warm_start="none", learning_rate=1e-5),
        replace(
            QUICK,
            kl=0.05,
            rows=4,
            entropy="none",
            gradient_checkpointing="on",
            rank=4,
            alpha=4.0,
            targets=("q_proj", "v_proj"),
            clip=1e-4,
        ),
    ],
    ids=["lora", "full", "kl"],
)
def test_the_folder_is_a_model(tmp_path: Path, settings: TrainingSettings, elsewhere: Executor) -> None:
    pytest.importorskip("trl")
    import asyncio

    from gnothi.methods.steps.prompts import ANSWER, ask
    from gnothi.models import load_model
    from gnothi.types import Decoding

    training = elsewhere.submit(recorded, train, tmp_path, ORIGIN, familiar_examples(), settings, Correctness())
    header, metrics = training.result()
    assert header == json.loads((tmp_path / HEADER).read_text())
    assert metrics == [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert [line["step"] for line in metrics if "loss" in line] == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in metrics if "reward" in line] == [1, 3, 5]  # each sampling is learnt from twice
    assert [line["step"] for line in metrics if "validation_reward" in line] == [0, 2, 4, 6]
    # No probability has moved at the first of two updates on the same replies, and any clip gives the same; then it is felt.
    clipped = [line["clip_ratio/region_mean"] for line in metrics if "loss" in line]
    assert not any(clipped[::2])
    if settings.clip != QUICK.clip:
        assert [share > 0 for share in clipped[1::2]] == [settings.clip < QUICK.clip] * 3
    assert train(tmp_path, ORIGIN, familiar_examples(), settings, Correctness()) == header
    model = load_model(str(tmp_path))
    assert model.profile.thresholds["self_report"] == header["threshold"]
    question = next(one.question for one in familiar_examples() if one.known)

    async def answer() -> str:
        try:
            return (await model.generate(ask(ANSWER, question), Decoding(max_tokens=8))).text
        finally:
            await model.aclose()

    assert asyncio.run(answer()).strip() == question.answers[0]


@pytest.mark.slow
def test_collapse_ends_it(tmp_path: Path, elsewhere: Executor) -> None:
    pytest.importorskip("trl")
    hasty = replace(QUICK, adapter="full", warm_start="none", learning_rate=1e-3, steps=40, patience=40, collapse_after=2)
    hasty = replace(hasty, entropy="none", balance=False, updates=1)
    with refused(TrainingCollapsed) as raised:
        elsewhere.submit(train, tmp_path, ORIGIN, familiar_examples(), hasty, Correctness()).result()
    assert raised.value.exit_code == 1


SETTINGS = ("steps=4", "questions=4", "replies=4", "warm_start_steps=2", "evaluate_every=2", "answers.n=4")
COMMAND = ("self-knowledge", "lab-train:one_hop", "--limit", "20")
BY_TWO = ("train", *COMMAND, *(part for setting in SETTINGS for part in ("--set", setting)), "--out")


def by_two(out: Path) -> None:
    main([*BY_TWO, str(out)])


@pytest.mark.slow
def test_two_processes(tmp_path: Path) -> None:
    """As ``accelerate launch`` starts them, which read what one found out before; and killed, of our own start."""
    pytest.importorskip("trl")
    undisturbed = tmp_path / "undisturbed"
    launched.command(*BY_TWO, str(undisturbed), "--collect-only")
    shutil.copytree(undisturbed, tmp_path / "killed")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    # Without --multi_gpu the launcher starts one process where there is no MPI, whatever --num_processes says.
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    with held_port() as port:
        launch += ["--main_process_port", str(port), "-m", "gnothi", *BY_TWO, str(undisturbed)]
        done = subprocess.run(launch, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stderr.count("training: about ") == 1  # by the first of them
    launched.killed_as_undisturbed(tmp_path, by_two, 5, (METRICS, HEADER, "model.safetensors", "gnothi.json"))
    lines = [json.loads(line) for line in (tmp_path / "killed" / METRICS).read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    assert [line["step"] for line in lines if "validation_reward" in line] == [0, 2, 4]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_three_moments(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    killed_three_times(tmp_path, COMMAND, SETTINGS, 6, ["answers/answers.jsonl"])


def test_pictures_are_written(tmp_path: Path) -> None:
    draw_familiarity(tmp_path, [0.0, 0.3, 1.0, 1.0], 10)
    draw_curves(tmp_path, [], PANELS)
    validated = {"validation_reward": 0.5, "yes_known": 0.9, "yes_unknown": None, "auroc": None, "refusal": 0.1}
    draw_curves(tmp_path, [{"step": 1, "reward": 0.1}, {"step": 2, **validated}], PANELS)
    for name in (FAMILIARITY, CURVES):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 2


KNOWN = Familiar(Question("known", "Who?", ("Ada",)), ("Bob", "Ada", "Ada"), (False, True, True))
UNKNOWN = Familiar(Question("unknown", "Who?", ("Eve",)), ("Bob", "Eve", "Cid"), (False, True, False))


def test_labels_follow_familiarity_and_teach_no_fact() -> None:
    shown = dict.fromkeys(("known", "unknown"), "")
    shown |= {one.question.id: reply for one, reply in replies([KNOWN, UNKNOWN], "labels", random.Random(0))}
    assert shown == {"known": "Yes, I know: Ada.", "unknown": NO}


def test_format_knows_nothing() -> None:
    found = [(one.question.id, reply) for one, reply in replies([KNOWN, UNKNOWN] * 200, "format", random.Random(0))]
    assert set(found) == {(name, reply) for name in ("known", "unknown") for reply in ("Yes, I know: Bob.", NO)}
    assert 150 < sum(reply == NO for _, reply in found) < 250


def test_every_question_comes_once_before_any_comes_again() -> None:
    chosen = order([KNOWN, UNKNOWN], 5, False, random.Random(0))
    assert [sorted(one.question.id for one in chosen[start : start + 2]) for start in (0, 2)] == [["known", "unknown"]] * 2
    assert len(chosen) == 5


def test_balance() -> None:
    many = [replace(KNOWN, question=Question(f"k{number}", "Who?")) for number in range(5)]
    names = [one.question.id for one in order([*many, UNKNOWN], 12, True, random.Random(0))]
    assert names[1::2] == ["unknown"] * 6
    assert sorted(names[0:10:2]) == [f"k{number}" for number in range(5)]
    assert len(order(many, 7, True, random.Random(0))) == 7


@pytest.mark.parametrize(
    ("epochs", "updates", "steps"), [(None, 2, 200), (1.0, 2, 2 * 5477), (1.0, 1, 5477), (0.5, 2, 2 * 2739), (0.01, 2, 2 * 55)]
)
def test_every_question_is_drawn_once_an_epoch(epochs: float | None, updates: int, steps: int) -> None:
    settings = TrainingSettings(epochs=epochs, updates=updates)
    assert settings.in_all(87_622) == steps
