"""What makes ReFeed: its own answers are what it searches with, and it keeps the surer of two answers."""

from __future__ import annotations

import pytest

from gnothi import events, methods
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Prompt, Question

QUESTION = Question("q", "Where was Mira Tolven born?")
RIGHT, OTHER = Passage("p", "Mira Tolven was born in Kestrel."), Passage("o", "Vesk is a town.")


def model(memory: float = -3.0, passages: float = -0.1) -> Scripted:
    def script(prompt: Prompt) -> list[Reply]:
        if prompt.passages:
            return [Reply("Kestrel", (passages,))]
        return [Reply("Vesk", (memory,)), Reply("Ulm", (memory,)), Reply("Vesk", (memory,)), Reply("unknown")]

    return Scripted(script)


def make(speaker: Scripted, **settings: object) -> tuple[ScriptedRetriever, object]:
    text = QUESTION.text
    retriever = ScriptedRetriever({f"{text} Vesk": [OTHER, RIGHT], f"{text} Ulm": [RIGHT], text: [OTHER]})
    given = {"reason": False, "answers": 4, **settings}
    return retriever, methods.create("refeed", {"model": speaker, "retriever": retriever}, given)


async def test_each_different_answer_is_searched_with() -> None:
    retriever, method = make(model())
    answer = await method(QUESTION)  # type: ignore[operator]
    assert retriever.queries == [f"{QUESTION.text} Vesk", f"{QUESTION.text} Ulm", QUESTION.text]
    assert answer.text == "Kestrel"
    assert answer.evidence == (OTHER, RIGHT)


@pytest.mark.parametrize(
    ("memory", "ensemble", "expected"), [(-3.0, True, "Kestrel"), (-0.01, True, "Vesk"), (-0.01, False, "Kestrel")]
)
async def test_the_likelier_answer_counts(memory: float, ensemble: bool, expected: str) -> None:
    _, method = make(model(memory), ensemble=ensemble)
    with events.record() as happened:
        answer = await method(QUESTION)  # type: ignore[operator]
    assert answer.text == expected
    assert any(isinstance(event, events.Ranked) and event.kind == "answer" for event in happened) is ensemble


async def test_one_answer_is_the_greedy_one() -> None:
    retriever, method = make(model(), answers=1, k=1)
    answer = await method(QUESTION)  # type: ignore[operator]
    assert retriever.queries == [f"{QUESTION.text} Vesk"]
    assert answer.evidence == (OTHER,)
