from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.signals.judge import NO, YES, probability_says_yes, says_yes
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Profile, Prompt, Task

PROMPT = Prompt(Task("useful"), "Does it help?")
probabilities = st.lists(st.floats(1e-6, 0.16), min_size=6, max_size=6)


def scored(values: dict[str, float]) -> Scripted:
    return Scripted({}, default="Well,", scorer=lambda _, text: math.log(values[text]) if values[text] else -math.inf)


@given(probabilities)
def test_yes_is_weighed_against_no_over_all_spellings(values: list[float]) -> None:
    judge = scored(dict(zip((*YES, *NO), values, strict=True)))
    found = asyncio.run(probability_says_yes(judge, PROMPT))
    assert found == pytest.approx(sum(values[:3]) / sum(values))
    assert asyncio.run(says_yes(judge, PROMPT)) is (found > 0.5)


def test_many_small_spellings_outweigh_one_large() -> None:
    judge = scored({"Yes": 0.15, "yes": 0.15, "YES": 0.0, "No": 0.2, "no": 0.0, "NO": 0.0})
    assert asyncio.run(says_yes(judge, PROMPT))


def test_where_nothing_is_possible_it_is_a_no() -> None:
    assert not asyncio.run(says_yes(scored(dict.fromkeys((*YES, *NO), 0.0)), PROMPT))


@pytest.mark.parametrize(("reply", "expected"), [("Sure! Yes", True), ("No, yes is wrong", False), ("Hard to say", False)])
def test_without_scores_the_text_decides(reply: str, expected: bool) -> None:
    judge = Scripted({}, default=reply, capabilities=Capabilities())
    assert asyncio.run(says_yes(judge, PROMPT)) is expected


def test_a_judge_that_was_taught_its_replies_is_taken_at_its_word() -> None:
    judge = Scripted({}, default="Yes", scorer=lambda _, text: -1.0 if text in NO else -9.0)
    judge.profile = Profile(tasks=frozenset({"useful"}))
    assert asyncio.run(says_yes(judge, PROMPT))
    assert not asyncio.run(says_yes(Scripted({}, default="Yes", scorer=lambda _, text: -1.0 if text in NO else -9.0), PROMPT))
