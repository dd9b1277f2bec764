"""Validation by hand: what counts as right, and the loss."""

from __future__ import annotations

import asyncio

import pytest

from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.testing.model import Scripted
from gnothi.training.reader.assess import assess
from gnothi.training.reader.material import Example
from gnothi.types import Prompt, Question

CHOICE = Question("c", "Which colour?", ("deep blue",), ("red", "deep blue"))
OPEN = Question("o", "Who wrote it?", ("Ada Bram", "Bram"))


def scorer(_: Prompt, text: str) -> float:
    return {"red": -1.5, "deep blue": -2.0, "Ada Bram": -3.0}[text]


@pytest.mark.parametrize(("by", "right"), [("tokens", 1.0), ("sum", 0.0)])
def test_choices_by_likelihood_and_answers_by_their_text(by: str, right: float) -> None:
    model = Scripted(lambda _: "Bram.\nIt is known.", scorer=scorer)
    examples = [Example(question, ask(ANSWER, question), question.answers[0]) for question in (CHOICE, OPEN)]
    rights, losses = asyncio.run(assess(model, examples, by, 8))  # type: ignore[arg-type]
    assert rights == [right, 1.0]
    assert losses == [1.0, 1.5]
