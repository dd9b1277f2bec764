"""Which sentences a training question is shown, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gnothi.retrieval.bm25 import BM25Index
from gnothi.testing.model import Scripted
from gnothi.training.self_knowledge.answers import ANSWERS, Answers, Asked, Familiar, sampling
from gnothi.training.self_knowledge.contexts import choose, find
from gnothi.training.self_knowledge.settings import AnswerSettings, TrainingSettings
from gnothi.training.self_knowledge.stages import split
from gnothi.types import Passage, Prompt, Question

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
    assert [(one.asked, one.acc_rate) for one in found] == [
        (Asked(QUESTION), 0),
        (Asked(QUESTION, HOLDING[0]), 1),
        (Asked(QUESTION, OTHERS[0]), 0),
        (Asked(questions[1]), 0),
    ]
    assert Answers.finished(tmp_path, questions).finish() == found
    lines = [json.loads(line) for line in (tmp_path / ANSWERS).read_text().splitlines()]
    assert [line.get("sentence", {}).get("id") for line in lines] == [None, "h0", "o0", None]
    assert [line["question_id"] for line in lines] == ["q", "q after h0", "q after o0", "r"]


def test_a_question_is_validated_with_all_its_sentences_or_not_at_all() -> None:
    asked = [
        Familiar(Question(str(number), "Who?", ("x",)), ("x",), (number % 2 == 0,), sentence)
        for number in range(20)
        for sentence in (None, *HOLDING[:2])
    ]
    training, validation = split(asked, TrainingSettings())
    assert len(training) + len(validation) == 60
    assert not {one.question.id for one in training} & {one.question.id for one in validation}
