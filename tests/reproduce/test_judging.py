"""Pairs of answers, labelled by the model that gave them, and judges of such pairs, on scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.filtering.encoders import LEXICAL
from gnothi.metrics import f1
from gnothi.metrics.bertscore import open_likeness
from gnothi.reproduce.judging import Judge, Pairs, best_threshold, pairs_of
from gnothi.runs.rows import Row
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Prompt, Question
from tests.messages import refused


def judging(same: Callable[[str, str], bool], answers: Mapping[str, tuple[str, ...]] | None = None) -> Scripted:
    """Lists the questions that ``answers`` has, gives these, and calls pairs the same as told."""

    def reply(prompt: Prompt) -> list[Reply]:
        if prompt.task.name == "equivalent":
            return [Reply("Yes" if same(*prompt.choices) else "No")]
        if prompt.task.name == "decompose":
            return [Reply("1. Who was it?\n2. When was #1 born?")]
        return [Reply(text) for text in (answers or {})[prompt.question]]

    return Scripted(reply, capabilities=Capabilities())


ANSWERS = {
    "Who was it?": ("Anna", "Annabel", "Bella", "unknown", "anna"),
    "When was Anna born?": ("1900", "1900", "1901", "1900", ""),
}
PAIRS = [
    ("When was Anna born?", "1900", "1901", False),
    ("Who was it?", "Anna", "Annabel", True),
    ("Who was it?", "Anna", "Bella", False),
]


def answered(text: str) -> Row:
    return Row("pairs", "q", "When was who born?", answer=text)


def test_the_first_answer_stands_beside_each_that_is_spelt_otherwise() -> None:
    """Of every quiz, which the commonest answer of an earlier one is put into; blank and unknown ones are no answers."""
    model = judging(lambda one, other: one.isalpha() and one[:2] == other[:2], ANSWERS)
    found = asyncio.run(Pairs(model, decompose=True)(Question("q", "When was who born?")))
    assert [tuple(one) for one in json.loads(found.text)] == PAIRS
    questions = pairs_of([answered(found.text)])
    assert [(one.text, one.metadata["pair"], one.answers) for one in questions] == [
        (quiz, (one, other), ("yes" if same else "no",)) for quiz, one, other, same in PAIRS
    ]
    assert len({one.id for one in questions}) == 3


def test_judges_say_yes_or_no() -> None:
    questions = pairs_of([answered(json.dumps(PAIRS))])
    by_letter = Judge(judging(lambda one, other: one[-1] == other[-1]))
    alike = Judge(judging(lambda *_: True), likeness=open_likeness(LEXICAL), threshold=0.5)
    assert [asyncio.run(by_letter(one)).text for one in questions] == ["no", "no", "yes"]
    assert [asyncio.run(alike(one)).text for one in questions] == ["no", "no", "no"]


def test_without_a_pair_there_is_nothing_to_judge() -> None:
    with refused(InvalidInput):
        pairs_of([answered("[]")])


@given(st.lists(st.tuples(st.sampled_from(["a b", "a c", "b", "a b c"]), st.booleans()), min_size=1))
def test_no_threshold_is_better(pairs: list[tuple[str, bool]]) -> None:
    questions = [
        Question(str(place), "?", ("yes" if same else "no",), metadata={"pair": ("a b", other)})
        for place, (other, same) in enumerate(pairs)
    ]
    likeness = [f1("a b", [other]) for other, _ in pairs]

    def right(threshold: float) -> int:
        return sum((one >= threshold) == same for one, (_, same) in zip(likeness, pairs, strict=True))

    best = right(best_threshold(open_likeness(LEXICAL), questions))
    assert best == max(right(step / 20) for step in range(42))


def test_likeness_of_other_lengths_is_refused() -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - Python's own
        open_likeness(LEXICAL)(["a"], [])
