"""QuCo-RAG by scripted replies over an index of ours: what is rare is looked up first, what never meets is written anew."""

from __future__ import annotations

from typing import Any

import pytest

from gnothi import events, methods
from gnothi.errors import InvalidSetting
from gnothi.methods.quco_rag import QuCoRag
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.foreign import as_retriever
from gnothi.signals import registry
from gnothi.testing import Reply, Scripted
from gnothi.types import Answer, Decoding, Passage, Prompt, Question, Task
from tests.messages import refused

QUESTION = Question("q", "In which town was the director of Velkarra born?")
PASSAGES = [
    Passage("film", "Velkarra was directed by Mira Tolven.", "Velkarra"),
    Passage("person", "Mira Tolven was born in Kestrel.", "Mira Tolven"),
    *(Passage(f"dish{n}", "Velkarra is also a dish of Ulm.") for n in range(3)),
]
TRUE = "Velkarra was directed by Mira Tolven. Mira Tolven was born in Kestrel. So the answer is Kestrel."
FALSE = "Velkarra was directed by Mira Tolven. Mira Tolven was born in Ulm. So the answer is Ulm."


def nothing(query: str, k: int) -> list[str]:  # noqa: ARG001
    return []


class Counting(BM25Index):
    """Notes what is searched for."""

    queries: tuple[str, ...] = ()

    async def search(self, query: str, k: int) -> Any:
        self.queries += (query,)
        return await super().search(query, k)


async def asked(*replies: str, question: Question = QUESTION, **settings: Any) -> tuple[Answer, Scripted, Counting, list[Any]]:
    left = list(replies)
    model = Scripted(lambda _: Reply(left.pop(0) if left else ""))
    index = Counting.in_memory(PASSAGES)
    assert isinstance(index, Counting)
    with events.record() as happened:
        answer = await QuCoRag(model, index, **settings)(question)
    return answer, model, index, [one for one in happened if isinstance(one, events.Decided) and one.signal]


async def test_a_rare_name_of_the_question_is_looked_up_and_shown_to_the_first_reply_alone() -> None:
    answer, model, index, decided = await asked("Velkarra was directed by Mira Tolven.", TRUE, k=2)
    assert index.queries == (QUESTION.text,)
    assert [len(prompt.passages) for prompt in model.prompts] == [2, 0]
    assert (decided[0].signal, decided[0].score, decided[0].threshold) == ("entity_frequency", -4.0, -1000.0)
    assert decided[0].verdict == "retrieve"
    assert answer.text == "Kestrel"
    assert len(answer.evidence) == 2


@pytest.mark.parametrize(("rare", "searches"), [(4.0, 0), (4.5, 1)])
async def test_the_mean_count_decides(rare: float, searches: int) -> None:
    answer, _, index, decided = await asked(TRUE, rare=rare)
    assert len(index.queries) == searches
    assert [one.verdict for one in decided] == ["retrieve" if searches else "trust", "trust", "trust"]
    assert (answer.text, answer.uncertainty) == ("Kestrel", -1.0)


async def test_a_question_without_names_is_no_reason_to_search() -> None:
    _, _, index, decided = await asked("It rained.", question=Question("q", "why does it rain?"))
    assert (index.queries, decided) == ((), [])


async def test_names_that_never_meet_are_looked_up_and_the_sentence_is_written_anew() -> None:
    anew = "Mira Tolven was born in Kestrel. So the answer is Kestrel. More."
    answer, model, index, decided = await asked(FALSE, anew, rare=0.0)
    assert index.queries == ("Mira Tolven was born in",)
    assert [one.verdict for one in decided] == ["trust", "trust", "retrieve"]
    assert (decided[-1].signal, decided[-1].score, decided[-1].threshold) == ("cooccurrence", 0.0, -1.0)
    assert model.prompts[1].answer_so_far == "Velkarra was directed by Mira Tolven."
    assert "person" in {passage.id for passage in model.prompts[1].passages}
    assert answer.rationale == TRUE
    assert (answer.text, answer.uncertainty) == ("Kestrel", 0.0)


async def test_what_was_written_behind_a_new_sentence_is_checked_next() -> None:
    first, wrong = "Velkarra was directed by Mira Tolven.", "Mira Tolven was born in Ulm."
    right = "Mira Tolven was born in Kestrel. So the answer is Kestrel."
    answer, model, index, _ = await asked(wrong, f"{first} {wrong}", right, rare=0.0)
    assert index.queries == ("Mira Tolven was born in",) * 2
    assert [prompt.answer_so_far for prompt in model.prompts] == ["", "", first]
    assert answer.rationale == f"{first} {right}"


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("He was born in Kestrel.", "Velkarra He was born in"),  # one name: with the question's
        ("It came out in Velkarra in 1967.", "It came out in Velkarra in"),
    ],
)
async def test_a_name_alone_is_paired_with_the_questions(reply: str, query: str) -> None:
    _, _, index, _ = await asked(reply, rare=0.0)
    assert index.queries[0] == query


async def test_it_ends_after_so_many_replies() -> None:
    _, model, _, _ = await asked(*["Velkarra was directed by Nobody Atall."] * 50, rare=0.0, max_steps=3, extra_calls=False)
    assert len(model.prompts) <= 2 * 3 + 1


async def test_a_draft_that_says_nothing_adds_nothing() -> None:
    answer, model, _, _ = await asked("I don't know.", "Ulm", rare=0.0)
    assert model.prompts[1].answer_so_far == "So the answer is"
    assert answer.text == "Ulm"


def test_an_index_that_does_not_count_is_refused_before_the_first_question() -> None:
    resources = {"model": Scripted({}), "retriever": as_retriever(nothing)}
    with refused(InvalidSetting):
        methods.create("quco_rag", resources, {})
    with refused(InvalidSetting):
        methods.create("seakr", resources, {"signal": "cooccurrence"})


def test_a_signal_that_counts_takes_the_methods_index_or_its_own() -> None:
    index, model = BM25Index.in_memory(PASSAGES), Scripted({})
    methods.create("seakr", {"model": model, "retriever": index}, {"signal": "cooccurrence"})
    methods.create("direct", {"model": model, "signal.corpus": index}, {"signal": "cooccurrence"})
    with refused(InvalidSetting):
        methods.create("direct", {"model": model}, {"signal": "cooccurrence"})


@pytest.mark.parametrize(
    ("name", "reply", "score"),
    [
        ("entity_frequency", "Ulm", -4.0),
        ("cooccurrence", "Ulm", -3.0),
        ("cooccurrence", "So the answer is Kestrel.", 0.0),  # it meets the director, who is not named
        ("cooccurrence", TRUE, -1.0),
        ("cooccurrence", "nobody", float("inf")),
    ],
)
async def test_the_signals_alone(name: str, reply: str, score: float) -> None:
    signal = registry.create(name, count=BM25Index.in_memory(PASSAGES).counter())
    found = await signal.measure(Scripted(lambda _: reply), Prompt(Task("reason"), QUESTION.text), Decoding())
    assert found.uncertainty == score
