"""What makes SKR: training questions like this one decide whether to retrieve."""

from __future__ import annotations

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting
from gnothi.filtering.knowledge import Neighbours
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Question

QUESTION = Question("q", "Where was Mira Tolven born?")
PASSAGE = Passage("p", "Mira Tolven was born in Kestrel.")


class Fixed:
    def __init__(self, found: Neighbours) -> None:
        self.found = found
        self.asked: list[tuple[str, int]] = []

    async def neighbours(self, question: str, n: int) -> Neighbours:
        self.asked.append((question, n))
        return self.found


@pytest.mark.parametrize(
    ("known", "unknown", "share", "retrieves"),
    [
        (5, 5, 0.5, False),
        (4, 6, 0.5, True),
        (4, 6, 0.3, False),  # most are unknown, but fewer than usual
        (3, 7, 0.3, False),  # as usual
        (9, 1, 0.95, True),  # most are known, but fewer than usual
    ],
)
async def test_neighbours_decide(known: int, unknown: int, share: float, retrieves: bool) -> None:
    reference, retriever = Fixed(Neighbours(known, unknown, share)), ScriptedRetriever([PASSAGE])
    model = Scripted(lambda prompt: f"So the answer is {'Kestrel' if prompt.passages else 'Vesk'}.")
    resources = {"model": model, "retriever": retriever, "reference": reference}
    with events.record() as recorded:
        answer = await methods.create("skr", resources, {"neighbours": 10})(QUESTION)
    assert answer.text == ("Kestrel" if retrieves else "Vesk")
    assert retriever.queries == ([QUESTION.text] if retrieves else [])
    assert reference.asked == [(QUESTION.text, 10)]
    (decided,) = (event for event in recorded if isinstance(event, events.Decided))
    assert (decided.kind, decided.verdict) == ("retrieve", "retrieve" if retrieves else "trust")
    assert (decided.score, decided.threshold) == pytest.approx((unknown / 10 - (1 - share), 0.0))


def test_without_a_reference_it_is_not_made_yet_described() -> None:
    with pytest.raises(InvalidSetting, match=r"'skr' needs a knowledge reference.*reference=PATH"):
        methods.create("skr", {"model": Scripted({}), "retriever": ScriptedRetriever([])}, {})
    assert "reference" in {setting.key for setting in methods.describe("skr").settings}
