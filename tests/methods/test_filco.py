"""What makes FILCO: sentences are measured against an answer, the model's draft or the gold one."""

from __future__ import annotations

import math

import pytest

from gnothi import events, methods
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Passage, Prompt, Question

QUESTION = Question("q", "Where was Mira born?", ("Corda",))
A = Passage("a", "Mira is a painter. She was born in Kestrel.", "Mira")
B = Passage("b", "Mira was born in Corda. Kestrel is a town.", "Namesake")


def script(prompt: Prompt) -> Reply:
    if prompt.task.name == "answer":
        return Reply("Kestrel")  # the draft
    return Reply(
        f"So the answer is {' '.join(one.text for one in prompt.passages).split()[-1] if prompt.passages else 'Nowhere'}"
    )


def scorer(prompt: Prompt, continuation: str) -> float:
    assert continuation == "Kestrel"
    return math.log(0.7 if any("town" in one.text for one in prompt.passages) else 0.2)


async def ask(settings: dict[str, object], draft: str | None = None) -> Answer:
    model = Scripted(script if draft is None else lambda _: Reply(draft), scorer=scorer)
    return await methods.create("filco", {"model": model, "retriever": ScriptedRetriever([A, B])}, {"reason": True} | settings)(
        QUESTION
    )


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({}, ["She was born in Kestrel."]),  # the first that holds the draft
        ({"spans": None}, ["She was born in Kestrel.", "Kestrel is a town."]),
        ({"oracle": True}, ["Mira was born in Corda."]),
        ({"measure": "lexical"}, ["She was born in Kestrel."]),  # title and sentence share five words with question and draft
        ({"measure": "lexical", "oracle": True}, ["Mira was born in Corda."]),
        ({"measure": "cxmi"}, ["Kestrel is a town."]),
    ],
)
async def test_measures(settings: dict[str, object], texts: list[str]) -> None:
    with events.record() as recorded:
        answer = await ask(settings)
    assert [one.text for one in answer.evidence] == texts
    (event,) = (event for event in recorded if isinstance(event, events.Filtered))
    assert event.kind == settings.get("measure", "strinc")
    assert answer.text == texts[-1].rstrip(".").split()[-1]


@pytest.mark.parametrize(
    ("settings", "draft", "best"), [({}, "Vesk", 0.0), ({"measure": "cxmi", "threshold": 2.0}, "Kestrel", math.log(3.5))]
)
async def test_where_nothing_is_kept_the_first_passage_is_read(settings: dict[str, object], draft: str, best: float) -> None:
    with events.record() as recorded:
        answer = await ask(settings, draft)
    assert answer.evidence == (A,)
    (event,) = (event for event in recorded if isinstance(event, events.Decided))
    assert (event.kind, event.verdict, event.subject) == ("keep", "fall_back", QUESTION.text)
    assert event.score == pytest.approx(best)


async def test_without_a_draft_everything_is_read() -> None:
    assert (await ask({}, "unknown")).evidence == (A, B)
