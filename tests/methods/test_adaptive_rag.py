"""What makes Adaptive-RAG: a classifier of the question, not the model's reply, chooses one of three strategies."""

from __future__ import annotations

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting
from gnothi.filtering.complexity import Probabilities
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was the painter of The Tide born?")
A, B, C = (Passage(name, f"Text of {name}.") for name in "abc")


class Fixed:
    def __init__(self, *chances: float) -> None:
        self.chances = Probabilities(*chances)
        self.asked: list[str] = []

    async def complexity(self, question: str) -> Probabilities:
        self.asked.append(question)
        return self.chances


@pytest.mark.parametrize(
    ("chances", "strategy", "queries", "evidence"),
    [
        ((0.5, 0.3, 0.2), "none", [], ()),
        ((0.1, 0.6, 0.3), "once", [QUESTION.text], (A, B)),
        ((0.1, 0.4, 0.5), "steps", [QUESTION.text, "Mira painted it."], (A, C)),
    ],
)
async def test_three_ways(chances: tuple[float, ...], strategy: str, queries: list[str], evidence: tuple[Passage, ...]) -> None:
    def reply(prompt: Prompt) -> str:
        return "So the answer is Kestrel." if prompt.answer_so_far else "Mira painted it. So the answer is Kestrel."

    classifier, retriever = Fixed(*chances), ScriptedRetriever({QUESTION.text: [A, B], "Mira painted it.": [C, B]})
    resources = {"model": Scripted(reply), "retriever": retriever, "classifier": classifier}
    with events.record() as recorded:
        answer = await methods.create("adaptive_rag", resources, {"k": 2, "steps_k": 1})(QUESTION)
    assert (answer.text, answer.evidence, retriever.queries) == ("Kestrel", evidence, queries)
    assert classifier.asked == [QUESTION.text]
    gate, choice = (event for event in recorded if isinstance(event, events.Decided))
    assert (gate.kind, gate.verdict) == ("retrieve", "trust" if strategy == "none" else "retrieve")
    assert (gate.score, gate.threshold) == (max(chances[1:]) - chances[0], None)
    assert (choice.kind, choice.verdict) == ("strategy", strategy)


def test_without_a_classifier_it_is_not_made() -> None:
    with refused(InvalidSetting):
        methods.create("adaptive_rag", {"model": Scripted({}), "retriever": ScriptedRetriever([])}, {})
