"""A training on the laboratory's model: the model it ends with, kills, collapse; and the rules in between."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gnothi import lab
from gnothi.errors import InvalidInput, TrainingCollapsed
from gnothi.models import LAB_FOLDER, ModelSettings
from gnothi.training.finetuning import HEADER, METRICS, Origin
from gnothi.training.self_knowledge.answers import Familiar
from gnothi.training.self_knowledge.reward import Correctness
from gnothi.training.self_knowledge.settings import TrainingSettings
from gnothi.training.self_knowledge.stages import collapsed, split, train
from gnothi.types import Question

ROOT = Path(__file__).parents[3]
ORIGIN = Origin("lab", str(LAB_FOLDER), ModelSettings())
QUICK = TrainingSettings(steps=6, questions=4, replies=4, warm_start_steps=3, warm_start_batch=8, evaluate_every=2)


def asked(count: int = 40) -> list[Familiar]:
    """Questions with what the shipped model knows of them, as the laboratory has it."""
    return [
        Familiar(question, (question.answers[0],) * 4, (question.metadata["familiarity"] != "never",) * 4)
        for question in lab.training_questions(lab.world(), "one_hop", count)
    ]


# --- rules ---------------------------------------------------------------------------------------------------------


def test_the_split_keeps_both_kinds_and_depends_on_the_seed() -> None:
    everything = asked()
    training, validation = split(everything, QUICK)
    assert len(training) + len(validation) == 40
    assert 4 <= len(validation) <= 8
    for part in (training, validation):
        assert {one.known for one in part} == {True, False}
    assert split(everything, QUICK) == (training, validation)
    assert split(everything, replace(QUICK, seed=1)) != (training, validation)


def test_nothing_to_tell_apart() -> None:
    with pytest.raises(InvalidInput, match="of 5 training questions the model knows 5, expected at least 2"):
        split([Familiar(Question(str(n), "Who?", ("x",)), ("x",), (True,)) for n in range(5)], QUICK)


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
        QUICK,
        replace(QUICK, adapter="full", warm_start="none", learning_rate=1e-5),
        replace(QUICK, kl=0.05, rows=8, entropy="none"),
    ],
    ids=["lora", "full", "kl"],
)
def test_the_folder_is_a_model(tmp_path: Path, settings: TrainingSettings) -> None:
    pytest.importorskip("trl")
    import asyncio

    from gnothi.methods.prompts import ANSWER, ask
    from gnothi.models import load_model
    from gnothi.types import Decoding

    heard: list[dict[str, Any]] = []
    header = train(tmp_path, ORIGIN, asked(), settings, Correctness(), heard.append)
    assert header == json.loads((tmp_path / HEADER).read_text())
    assert heard == [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert [line["step"] for line in heard if "reward" in line] == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in heard if "validation_reward" in line] == [0, 2, 4, 6]
    assert train(tmp_path, ORIGIN, asked(), settings, Correctness()) == header
    model = load_model(str(tmp_path))
    assert model.thresholds["self_report"] == header["threshold"]
    question = next(one.question for one in asked() if one.known)

    async def answer() -> str:
        try:
            return (await model.generate(ask(ANSWER, question), Decoding(max_tokens=8))).text
        finally:
            await model.aclose()

    assert asyncio.run(answer()).strip() == question.answers[0]


@pytest.mark.slow
def test_collapse_ends_it(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    hasty = replace(QUICK, adapter="full", warm_start="none", learning_rate=1e-3, steps=40, patience=40, collapse_after=2)
    hasty = replace(hasty, entropy="none", balance=False)
    with pytest.raises(TrainingCollapsed, match=r"2 validations in a row the reply to every question was No.*lower") as raised:
        train(tmp_path, ORIGIN, asked(), hasty, Correctness())
    assert raised.value.exit_code == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_three_moments(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    settings = ("steps=8", "questions=4", "replies=4", "warm_start_steps=3", "evaluate_every=2", "answers.n=4")
    program = [sys.executable, "-m", "gnothi", "train", "self-knowledge", "lab-train:one_hop", "--limit", "40"]
    program += [part for setting in settings for part in ("--set", setting)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def lines() -> int:
        file = tmp_path / "killed" / METRICS
        return file.read_bytes().count(b"\n") if file.exists() else 0

    random_ = random.Random(0)
    for wanted in sorted(random_.sample(range(1, 11), 3)):
        process = subprocess.Popen([*program, "--out", str(tmp_path / "killed")], env=environment, cwd=ROOT)
        while process.poll() is None and lines() < wanted:
            time.sleep(0.01)
        time.sleep(random_.random() * 0.3)
        process.kill()
        process.wait()
    assert not (tmp_path / "killed" / HEADER).exists()
    for name in ("killed", "undisturbed"):
        subprocess.run([*program, "--out", str(tmp_path / name)], env=environment, cwd=ROOT, check=True)
    for name in (METRICS, HEADER, "model.safetensors", "gnothi.json", "answers/answers.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name
    best = json.loads((tmp_path / "killed" / HEADER).read_text())["best_step"]
    adapter = Path("checkpoints") / f"checkpoint-{best}" / "adapter_model.safetensors"
    assert (tmp_path / "killed" / adapter).read_bytes() == (tmp_path / "undisturbed" / adapter).read_bytes()
