"""Sampling with a scripted model: what a line says, and a sampling that ends early."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, TooManyFailures, UnknownName
from gnothi.models.wrappers import Seeded, Traced
from gnothi.testing.model import Scripted
from gnothi.training.self_knowledge.answers import ANSWERS, Answers, Familiar, sampling
from gnothi.training.self_knowledge.settings import AnswerSettings
from gnothi.types import Prompt, Question

QUESTIONS = [Question(f"q{number}", f"Question {number}?", ("Ada Bram",)) for number in range(8)]
SETTINGS = AnswerSettings(n=4)
CONFIG = {"dataset": "test"}


def script(prompt: Prompt) -> str:
    return "It is Ada Bram." if int(prompt.question.split()[1][:-1]) % 2 else "Nobody"


def collect(out: Path, model: Scripted, on_line: Callable[[Any], None] | None = None, **given: Any) -> list[Familiar]:
    with Answers(out, given.pop("questions", QUESTIONS), given.pop("config", CONFIG)) as collecting:
        asyncio.run(
            collecting.collect(
                sampling(collecting.by_name, Traced(Seeded(model)), SETTINGS), 3, given.pop("max_failures", None), on_line
            )
        )
        return collecting.finish()


def test_a_line(tmp_path: Path) -> None:
    model = Scripted(script)
    found = collect(tmp_path, model)
    assert [one.acc_rate for one in found] == [0, 1] * 4
    assert {prompt.task.name for prompt in model.prompts} == {"answer"}
    line = json.loads((tmp_path / ANSWERS).read_text().splitlines()[1])
    usage = line.pop("usage")
    assert line == {
        "question_id": "q1", "question": "Question 1?", "choices": [], "gold": ["Ada Bram"],
        "answers": ["It is Ada Bram"] * 4, "correct": [True] * 4, "acc_rate": 1.0,
    }  # fmt: skip
    assert usage["model_calls"] == 1
    assert Answers.finished(tmp_path, QUESTIONS).finish() == found


def test_another_metric(tmp_path: Path) -> None:
    with Answers(tmp_path, QUESTIONS, CONFIG) as collecting:
        asyncio.run(
            collecting.collect(sampling(collecting.by_name, Traced(Scripted(script)), AnswerSettings(n=2, metric="em")))
        )
        assert {one.acc_rate for one in collecting.finish()} == {0.0}
    with pytest.raises(UnknownName, match="unknown metric: got 'bleu'"):
        AnswerSettings(metric="bleu")


@pytest.mark.parametrize("finished", [1, 5])
def test_an_interruption_leads_to_the_same_file(tmp_path: Path, finished: int) -> None:
    undisturbed = collect(tmp_path / "undisturbed", Scripted(script))
    seen: list[object] = []

    def interrupt(line: object) -> None:
        seen.append(line)
        if len(seen) == finished:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C: asyncio cancels; raised in a task, it would be lost

    model = Scripted(script)
    with pytest.raises(KeyboardInterrupt):
        collect(tmp_path / "disturbed", model, interrupt)
    with (tmp_path / "disturbed" / ANSWERS).open("a") as file:
        file.write('{"question_id": "q7", "acc')  # torn
    assert collect(tmp_path / "disturbed", model) == undisturbed
    files = [(tmp_path / name / ANSWERS).read_bytes() for name in ("disturbed", "undisturbed")]
    assert files[0] == files[1]


def test_failures_are_told_and_tried_again(tmp_path: Path) -> None:
    def fails(prompt: Prompt) -> str:
        if prompt.question == "Question 3?":
            raise RuntimeError("no luck")
        return script(prompt)

    assert len(collect(tmp_path, Scripted(fails))) == 7
    with pytest.raises(TooManyFailures, match="RuntimeError: no luck"):
        collect(tmp_path, Scripted(fails), max_failures=0)
    assert len(collect(tmp_path, Scripted(script))) == 8


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'q' has no gold answer"):
        Answers(tmp_path / "a", [Question("q", "Who?")], CONFIG)
    with pytest.raises(InvalidInput, match="'q0' more than once"):
        Answers(tmp_path / "a", QUESTIONS[:1] * 2, CONFIG)
    collect(tmp_path / "b", Scripted(script), questions=QUESTIONS[:3])
    with pytest.raises(InvalidSetting, match="was made with dataset"):
        Answers(tmp_path / "b", QUESTIONS, {"dataset": "other"})
    with pytest.raises(InvalidInput, match=r"expected 5 more .*without the launcher, with --collect-only"):
        Answers.finished(tmp_path / "b", QUESTIONS).require_finished("--collect-only")
