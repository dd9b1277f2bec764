"""PMI against hand-worked values, and what the filter asks, keeps and tells."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.filtering.self_knowledge import Informative, pmi
from gnothi.filtering.sentences import sentences_of
from gnothi.methods.steps.prompts import USEFUL
from gnothi.signals.kinds.self_report import KNOW
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Passage, Prompt, Question

QUESTION = Question("q", "Where was Mira Tolven born?")
A = Passage("a", "Mira is a painter. She was born in Kestrel.", "Mira Tolven")
B = Passage("b", "Kestrel is a town. It rains.", "Kestrel")
YES = {"": 0.2, "Mira is a painter.": 0.1, "She was born in Kestrel.": 0.8, "Kestrel is a town.": 0.4, "It rains.": 0.2}
"""P("Yes") with the sentence; P("No") is 0.1 more than half the rest, so that normalising matters."""


def scorer(prompt: Prompt, continuation: str) -> float:
    yes = YES[prompt.passages[0].text if prompt.passages else ""]
    return math.log(yes if continuation == "Yes" else (1 - yes) / 2)


def judge(**settings: Any) -> Informative:
    model = Scripted(lambda _: "", scorer=scorer, capabilities=Capabilities(scoring=True))
    return Informative(model, **settings)


async def test_pmi_by_hand() -> None:
    scores = await judge().scores(QUESTION, sentences_of([A, B]))
    assert scores == pytest.approx([math.log(0.5), math.log(4), math.log(2), 0.0])


async def test_a_task_about_passages_is_judged_by_its_odds() -> None:
    scores = await judge(task=USEFUL).scores(QUESTION, sentences_of([A]))
    assert scores == pytest.approx([math.log(0.1 / 0.45), math.log(0.8 / 0.1)])


async def test_sentences_that_raise_the_probability_stay() -> None:
    informative = judge()
    with events.record() as recorded:
        kept = await informative(QUESTION, [A, B])
    assert kept == (Passage("a", "She was born in Kestrel.", "Mira Tolven"), Passage("b", "Kestrel is a town.", "Kestrel"))
    (event,) = recorded
    assert isinstance(event, events.Filtered)
    assert (event.kind, event.question, event.threshold) == ("pmi", QUESTION.text, 0.0)
    assert [(source, text, stays) for source, text, _, stays in event.sentences] == [
        ("a", "Mira is a painter.", False),
        ("a", "She was born in Kestrel.", True),
        ("b", "Kestrel is a town.", True),
        ("b", "It rains.", False),
    ]
    prompts = informative.judge.prompts  # type: ignore[attr-defined]
    assert [prompt.task for prompt in prompts] == [KNOW] * 5
    assert [prompt.passages for prompt in prompts][:2] == [(), (Passage("a#0", "Mira is a painter.", "Mira Tolven"),)]


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"threshold": 1.0}, ["She was born in Kestrel."]),
        ({"threshold": 9.0}, []),
        ({"threshold": -9.0, "most": 1}, ["She was born in Kestrel."]),
    ],
)
async def test_options(settings: dict[str, Any], texts: list[str]) -> None:
    assert [one.text for one in await judge(**settings)(QUESTION, [A, B])] == texts


async def test_titles_may_be_left_out() -> None:
    informative = judge(titles=False)
    await informative(QUESTION, [A])
    assert {passage.title for prompt in informative.judge.prompts for passage in prompt.passages} == {""}  # type: ignore[attr-defined]


async def test_nothing_to_filter_asks_nothing() -> None:
    informative = judge()
    assert await informative(QUESTION, []) == ()
    assert not informative.judge.prompts  # type: ignore[attr-defined]


@given(st.floats(max_value=0.0), st.floats(max_value=0.0))
def test_impossible_replies_give_numbers(one: float, other: float) -> None:
    assert not math.isnan(pmi(one, other))
