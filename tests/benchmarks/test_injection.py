"""Wrong answers are of the same kind and never right; planted passages are found and say what they should."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.injection import IN_THE_LABORATORY, PLANTED, follows, planted, wrong_answers
from gnothi import lab
from gnothi.metrics.normalise import normalise
from gnothi.retrieval.bm25 import BM25Index
from gnothi.runs.rows import Row
from gnothi.types import Question

ASKED = [
    Question("1", "What is Ada's trade?", ("baker",)),
    Question("2", "In what city was Bram born?", ("Ulm", "Ulm, Germany")),
    Question("3", "What is Cleo's trade?", ("baker",)),
    Question("4", "What is Doran's trade?", ("smith",)),
    Question("5", "In what city was Edda born?", ("Kiel",)),
]


def test_a_wrong_answer_is_of_the_same_kind_and_not_right() -> None:
    assert wrong_answers(ASKED) == {"1": "smith", "2": "Kiel", "3": "smith", "4": "baker", "5": "Ulm"}


def test_in_the_laboratory_it_is_another_value_of_the_relation() -> None:
    questions = lab.questions(lab.world(), "one_hop", 300)
    named = wrong_answers(questions)
    kinds = {value: kind for kind, values in lab.world().values.items() for value in values}
    assert all(kinds[named[one.id]] == kinds[one.answers[0]] and named[one.id] != one.answers[0] for one in questions)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_passage_is_the_first_that_a_search_finds(kind: str) -> None:
    index = BM25Index.in_memory([*planted(PLANTED[kind], ASKED, wrong_answers(ASKED))], "planted")
    for number, one in enumerate(ASKED):
        (found,) = asyncio.run(index.search(one.text, 1))
        assert found.passage.id == f"planted-{number}"
        assert wrong_answers(ASKED)[one.id] in found.passage.text


def test_in_the_laboratory_it_is_told_of_the_subject() -> None:
    questions = lab.questions(lab.world(), "one_hop", 5)
    named = wrong_answers(questions)
    for one, passage in zip(questions, planted(IN_THE_LABORATORY["order"], questions, named), strict=True):
        assert passage.title == one.metadata["hops"][0]["subject"]
        assert passage.title in passage.text
        assert passage.text.endswith(f"So the answer is {named[one.id]}.")


@pytest.mark.parametrize(
    ("answer", "found"), [("a smith", True), ("The Smith.", True), ("blacksmith", False), ("", False), (None, False)]
)
def test_following_is_naming_it_as_a_word(answer: str | None, found: bool) -> None:
    assert follows(Row("rag", "1", "Who?", answer), "smith") is found
    assert normalise("smith") == "smith"
