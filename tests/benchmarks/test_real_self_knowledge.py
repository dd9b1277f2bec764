"""Which questions a real model's self-knowledge is trained and tested on, and what the table says of the seeds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import real_self_knowledge
from benchmarks.real_self_knowledge import command, draw, lines, measure, tells, written
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Prompt, Question
from tests.messages import refused


@pytest.mark.parametrize(
    ("text", "answers", "usable"),
    [
        ("In what city was Ann born?", ("Detroit", "Motor City"), True),
        ("In what city was Ann born?", ("Detroit", "The D"), False),
        ("What is the tower of Big Ben called?", ("Elizabeth Tower", "Big Ben"), False),
        ("Who was Ann?", (), False),
    ],
)
def test_questions_of_which_an_answer_tells_little_are_left_out(text: str, answers: tuple[str, ...], usable: bool) -> None:
    assert tells(Question("q", text, answers=answers)) is usable


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "recorded").mkdir()
    for part in ("dev", "test"):
        rows = [{"question_id": f"{part}{n}", "question": f"Which {part} is {n}?", "answers": [f"town{n}"]} for n in range(30)]
        (tmp_path / "recorded" / f"trivia.{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    rows = [{"id": str(n), "question": f"Where is river {n}?", "answers": [f"town{n}"]} for n in range(40)]
    (tmp_path / "popqa.json").write_text(json.dumps(rows), "utf-8")
    return tmp_path


def test_training_and_test_never_overlap_and_leave_the_benchmark_its_questions(data: Path) -> None:
    training, held_out = draw(data, {"trivia": (30, 20), "popqa": (12, 8)})
    assert (len(training), len(held_out)) == (42, 28)
    assert not {one.text for one in training} & {one.text for one in held_out}
    judged = {identity for source, identity in real_self_knowledge._judged(data) if source == "popqa"}
    assert len(judged) == 20  # of 40 questions, in proportion: 20 to train on, 10 and 10
    assert not {f"popqa-{identity}" for identity in judged} & {one.id for one in (*training, *held_out)}
    assert draw(data, {"trivia": (30, 20), "popqa": (12, 8)}) == (training, held_out)


def test_questions_of_a_file_are_left_out(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text(
        "".join(json.dumps({"question": f"which DEV is {n}?", "answers": ["x"]}) + "\n" for n in range(12)), "utf-8"
    )
    training, held_out = draw(data, {"trivia": (30, 18)}, without=[kept])
    assert not {one.text for one in (*training, *held_out)} & {f"Which dev is {n}?" for n in range(12)}
    with refused(SystemExit):
        draw(data, {"trivia": (30, 19)}, without=[kept])


def test_more_than_there_is_is_refused(data: Path) -> None:
    with refused(SystemExit):
        draw(data, {"popqa": (20, 1)})


def test_a_folder_of_other_questions_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "train.jsonl", [Question("q", "Who?", answers=("Ann",))])
    written(tmp_path / "train.jsonl", [Question("q", "Who?", answers=("Ann",))])
    with refused(SystemExit):
        written(tmp_path / "train.jsonl", [Question("q", "Whose?", answers=("Ann",))])


def test_seeds_share_the_answers(tmp_path: Path) -> None:
    given = argparse.Namespace(out=tmp_path, model="smollm2", set=["steps=4"])
    first, second = (command(given, tmp_path / "train.jsonl", seed) for seed in (0, 1))
    assert first[first.index("--findings") + 1] == second[second.index("--findings") + 1]
    assert first[first.index("--out") + 1] != second[second.index("--out") + 1]
    assert "steps=4" in first
    assert not [word for word in first if word.startswith("steps=") and word != "steps=4"]
    assert command(given, tmp_path / "train.jsonl", 0, answers_only=True) == [*first, "--collect-only"]


def test_a_model_is_measured_against_the_truth_of_its_own_answers() -> None:
    def reply(prompt: Prompt) -> Reply:
        return Reply("Kestrel" if "1" in prompt.question else "Vesk", (-0.1 if "1" in prompt.question else -2.0,))

    asked = [Question(str(n), f"Where is {n}?", answers=("Kestrel",)) for n in (10, 11, 12, 20, 22, 23)]
    found = measure(Scripted(reply), asked)
    assert (found["right"], found["questions"], found["auroc_perplexity"]) == (3, 6, 1.0)
    assert [row["right"] for row in found["rows"]] == [True, True, True, False, False, False]


def test_the_table_shows_every_seed_and_their_spread() -> None:
    def measured(auroc: float) -> dict[str, Any]:
        found = {"auroc_yes": auroc, "interval_yes": [auroc - 0.1, auroc + 0.1], "auroc_perplexity": 0.7}
        return {**found, "interval_perplexity": None, "yes_right": 0.8, "yes_wrong": 0.25, "right": 40, "questions": 600}

    took = {"best": 10, "steps": 20, "minutes": 30.4, "cpu_minutes": 8.6}
    runs = [{"seed": seed, "after": measured(0.6 + seed / 10), **took} for seed in range(3)]
    shown = lines(measured(0.55), runs)
    assert len(shown) == 8
    assert "| before | 0.550 [0.450, 0.650] | 0.700 | 0.80 / 0.25 | 40 of 600 |" in shown[2]
    assert "| seed 2 | 0.800 [0.700, 0.900] |" in shown[5]
    assert "| 10 of 20 | 30 | 9 |" in shown[5]
    assert shown[-1] == "After: 0.700 (0.600 - 0.800) of 3 seeds"
    assert lines(measured(0.55), [])[-1] == "No seed is done."
