"""What the supervised stage shows a model."""

from __future__ import annotations

import random
from dataclasses import replace

from gnothi.training.self_knowledge.answers import Familiar
from gnothi.training.self_knowledge.reward import NO
from gnothi.training.self_knowledge.warm_start import order, replies
from gnothi.types import Question

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
