"""Pairs from a scripted model and a small graph."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gnothi.errors import InvalidInput
from gnothi.models.wrappers import Seeded, Traced
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ListedGraph
from gnothi.training.reranker.pairs import PAIRS, CollectingPairs, Example, pairs
from gnothi.training.reranker.settings import PairSettings
from gnothi.types import Prompt, Question

GRAPH = (
    ("Film", "director", "Ann"),
    ("Film", "star", "Bob"),
    ("Ann", "birthplace", "Oslo"),
    ("Bob", "birthplace", "Rome"),
    ("Cy", "birthplace", "Oslo"),
    ("Play", "author", "Cy"),
)
QUESTIONS = [
    Question("film", "Where was the director of Film born?", ("Oslo",), ("Rome", "Oslo")),
    Question("play", "Where was the author of Play born?", ("Oslo",), ("Rome", "Oslo")),
    Question("nobody", "Where was somebody born?", ("Bern",), ("Bern", "Rome")),
]


def script(prompt: Prompt) -> str:
    return {"Film": "Film was made by Ann."}.get(prompt.question, "I know nothing.")


def collect(out: Path, model: Scripted, limit: int | None = None, **given: Any) -> list[Example]:
    with CollectingPairs(out, QUESTIONS, {"dataset": "test"}) as collecting:
        if limit is not None:
            collecting.questions = QUESTIONS[:limit]
        find = partial(pairs, model=Traced(Seeded(model)), graph=ListedGraph(GRAPH), settings=PairSettings(**given))
        asyncio.run(collecting.collect(find))
        return collecting.finish()


def test_a_line(tmp_path: Path) -> None:
    model = Scripted(script)
    found = collect(tmp_path, model)
    assert [one.question_id for one in found] == ["film", "play"]  # nothing leads to Bern
    assert {prompt.task.name for prompt in model.prompts} == {"describe"}
    line = json.loads((tmp_path / PAIRS).read_text().splitlines()[0])
    assert line.pop("usage")["model_calls"] == 3
    assert line == {
        "question_id": "film",
        "query": "Where was the director of Film born? Rome / Oslo\nFilm was made by Ann.",
        "positive": ["Film director Ann.", "Ann birthplace Oslo."],
        "negative": ["Film star Bob.", "Bob birthplace Rome.", "Cy birthplace Oslo.", "Play author Cy."],
        "candidates": 6,
    }


def test_without_internal_knowledge_no_model_is_asked(tmp_path: Path) -> None:
    model = Scripted(script)
    found = collect(tmp_path, model, internal=False)
    assert not model.prompts
    assert found[0].query == "Where was the director of Film born? Rome / Oslo"


def test_numbers_of_negatives(tmp_path: Path) -> None:
    (film,) = collect(
        tmp_path, Scripted(script), linked=1, alike=0, near=0, random=0, positives=1
    )  # the other has no negatives
    assert len(film.positive) == 1
    assert set(film.negative) < {"Film star Bob.", "Bob birthplace Rome."}


def test_an_interruption_leads_to_the_same_file(tmp_path: Path) -> None:
    undisturbed = collect(tmp_path / "undisturbed", Scripted(script))
    collect(tmp_path / "interrupted", Scripted(script), limit=1)
    again = Scripted(script)
    assert collect(tmp_path / "interrupted", again) == undisturbed
    assert "Film" not in {prompt.question for prompt in again.prompts}
    assert (tmp_path / "interrupted" / PAIRS).read_bytes() == (tmp_path / "undisturbed" / PAIRS).read_bytes()


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (Question("open", "Who?", ("Ann",)), "got 0 choices"),
        (Question("odd", "Who?", ("Ann",), ("Bob", "Cy")), "'Ann' not among them"),
        (Question("blind", "Who?", (), ("Bob", "Cy")), "no gold answer"),
    ],
)
def test_questions_must_have_choices_and_the_right_one(tmp_path: Path, question: Question, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        CollectingPairs(tmp_path, [question], {})
