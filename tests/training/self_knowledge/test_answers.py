"""Sampling with a scripted model: what a line says, and a sampling that ends early."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.models.wrappers import Seeded, Traced
from gnothi.retrieval.bm25 import BM25Index
from gnothi.testing.model import Scripted
from gnothi.training.self_knowledge.answers import ANSWERS, Answers, Familiar, TrainingQuestion, choose, find, sampling
from gnothi.training.self_knowledge.settings import AnswerSettings, TrainingSettings
from gnothi.training.self_knowledge.stages import split
from gnothi.types import Passage, Prompt, Question
from tests.messages import refused

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
    with refused(UnknownName):
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


def test_what_is_refused(tmp_path: Path) -> None:
    with refused(InvalidInput):
        Answers(tmp_path / "a", [Question("q", "Who?")], CONFIG)
    with refused(InvalidInput):
        Answers(tmp_path / "a", QUESTIONS[:1] * 2, CONFIG)
    collect(tmp_path / "b", Scripted(script), questions=QUESTIONS[:3])
    with refused(InvalidSetting):
        Answers(tmp_path / "b", QUESTIONS, {"dataset": "other"})
    with refused(InvalidInput):
        Answers.finished(tmp_path / "b", QUESTIONS).require_finished("--collect-only")


QUESTION = Question("q", "Who made the Amber Harbour?", ("Ada Bram",))
HOLDING = [Passage(f"h{number}", f"Ada Bram made it, they say {number}.") for number in range(5)]
OTHERS = [Passage(f"o{number}", f"It has {number} boats.") for number in range(5)]


@pytest.mark.parametrize(
    ("holding", "others", "count", "expected"),
    [(5, 5, 4, 2), (5, 5, 5, 3), (5, 1, 4, 3), (0, 5, 4, 0), (1, 0, 4, 1), (5, 5, 0, 0)],
)
def test_up_to_half_hold_a_gold_answer(holding: int, others: int, count: int, expected: int) -> None:
    chosen = choose(QUESTION, [*HOLDING[:holding], *OTHERS[:others]], count)
    assert len(chosen) == len(set(chosen)) == min(count, holding + others)
    assert sum(one in HOLDING for one in chosen) == expected
    assert chosen == choose(QUESTION, [*HOLDING[:holding], *OTHERS[:others]], count)


def test_they_are_sentences_of_what_is_found() -> None:
    text = "Ada Bram made the Amber Harbour. It opened in 1867. It has two piers."
    index = BM25Index.in_memory([Passage("p", text, "Amber Harbour"), Passage("p2", text, "Amber Harbour")], "test")
    found = asyncio.run(find([QUESTION], index, 4, 5))
    assert [one.title for one in found["q"]] == ["Amber Harbour"] * 3  # a sentence that comes twice is shown once
    assert "".join(sorted(one.text[0] for one in found["q"])) == "AII"


def test_answers_after_sentences(tmp_path: Path) -> None:
    questions = [QUESTION, Question("r", "Who else?", ("Eve",))]
    shown = {"q": (HOLDING[0], OTHERS[0])}

    def script(prompt: Prompt) -> str:
        return "Ada Bram" if HOLDING[0] in prompt.passages else "nobody"

    with Answers(tmp_path, questions, {}, shown) as collecting:
        asyncio.run(collecting.collect(sampling(collecting.by_name, Scripted(script), AnswerSettings(n=2))))
        found = collecting.finish()
        assert not collecting.missing
    assert [(one.training_question, one.acc_rate) for one in found] == [
        (TrainingQuestion(QUESTION), 0),
        (TrainingQuestion(QUESTION, HOLDING[0]), 1),
        (TrainingQuestion(QUESTION, OTHERS[0]), 0),
        (TrainingQuestion(questions[1]), 0),
    ]
    assert Answers.finished(tmp_path, questions).finish() == found
    lines = [json.loads(line) for line in (tmp_path / ANSWERS).read_text().splitlines()]
    assert [line.get("sentence", {}).get("id") for line in lines] == [None, "h0", "o0", None]
    assert [line["question_id"] for line in lines] == ["q", "q after h0", "q after o0", "r"]


def test_a_question_is_validated_with_all_its_sentences_or_not_at_all() -> None:
    examples = [
        Familiar(Question(str(number), "Who?", ("x",)), ("x",), (number % 2 == 0,), sentence)
        for number in range(20)
        for sentence in (None, *HOLDING[:2])
    ]
    training, validation = split(examples, TrainingSettings())
    assert len(training) + len(validation) == 60
    assert not {one.question.id for one in training} & {one.question.id for one in validation}
