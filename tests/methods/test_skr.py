"""What makes SKR: training questions like this one decide whether to retrieve."""

from __future__ import annotations

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting
from gnothi.filtering.knowledge import Neighbours
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Question
from tests.messages import refused

QUESTION = Question("q", "Where was Mira Tolven born?")
PASSAGE = Passage("p", "Mira Tolven was born in Kestrel.")


class Fixed:
    def __init__(self, found: Neighbours) -> None:
        self.found = found
        self.asked: list[tuple[str, int]] = []

    async def neighbours(self, question: str, n: int) -> Neighbours:
        self.asked.append((question, n))
        return self.found


async def decision(found: Neighbours, **settings: object) -> tuple[bool, float]:
    """Whether it searches, and the score that says so."""
    reference, retriever = Fixed(found), ScriptedRetriever([PASSAGE])
    model = Scripted(lambda prompt: f"So the answer is {'Kestrel' if prompt.passages else 'Vesk'}.")
    resources = {"model": model, "retriever": retriever, "reference": reference}
    with events.record() as recorded:
        answer = await methods.create("skr", resources, {"neighbours": 10, **settings})(QUESTION)
    retrieves = answer.text == "Kestrel"
    assert retriever.queries == ([QUESTION.text] if retrieves else [])
    assert reference.asked == [(QUESTION.text, 10)]
    (decided,) = (event for event in recorded if isinstance(event, events.Decided))
    assert (decided.kind, decided.verdict) == ("retrieve", "retrieve" if retrieves else "trust")
    assert decided.threshold == 0.0
    assert decided.score is not None
    return retrieves, decided.score


@pytest.mark.parametrize(
    ("known", "unknown", "stored", "retrieves"),
    [
        (5, 5, (5, 5), False),
        (4, 6, (5, 5), True),
        (4, 6, (3, 7), False),  # most are unknown, but fewer than usual
        (3, 7, (3, 7), False),  # as usual
        (9, 1, (19, 1), True),  # most are known, but fewer than usual
    ],
)
async def test_the_papers_vote_is_by_shares(known: int, unknown: int, stored: tuple[int, int], retrieves: bool) -> None:
    found = Neighbours(known, unknown, (*stored, 9))
    share = stored[1] / sum(stored)
    fired, score = await decision(found, votes="share")
    assert fired == retrieves
    assert score == pytest.approx(unknown / 10 - share)


@pytest.mark.parametrize(
    ("known", "unknown", "stored", "score"),
    [
        (6, 4, (62, 47, 740), -0.1),  # known questions are commoner: they win by one vote
        (5, 5, (62, 47, 740), 0.1),
        (6, 4, (80, 20, 0), 0.4),  # ... here only by the six votes of their usual lead
        (8, 2, (80, 20, 0), 0.0),
        (4, 6, (47, 62, 740), 0.2),  # unknown ones are
        (5, 5, (47, 62, 740), 0.0),
        (4, 6, (5, 5, 0), 0.2),
    ],
)
async def test_the_authors_vote_is_by_a_lead(known: int, unknown: int, stored: tuple[int, int, int], score: float) -> None:
    fired, found = await decision(Neighbours(known, unknown, stored))
    assert fired == (score > 0)
    assert found == pytest.approx(score)


def test_without_a_reference_it_is_not_made_yet_described() -> None:
    with refused(InvalidSetting):
        methods.create("skr", {"model": Scripted({}), "retriever": ScriptedRetriever([])}, {})
    assert "reference" in {setting.key for setting in methods.describe("skr").settings}
