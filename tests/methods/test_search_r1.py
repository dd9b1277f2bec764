"""Search-R1 by scripted turns: tags, turns that are neither, the last turn, R1-Searcher's tags, thoughts told apart."""

from __future__ import annotations

from typing import Any

import pytest

from gnothi import events
from gnothi.errors import MissingCapability
from gnothi.methods.search_r1 import INVALID, TAGS, SearchR1, full_text
from gnothi.testing import Reply, Scripted, ScriptedRetriever
from gnothi.types import Generation, Passage, Profile, Prompt, Question

QUESTION = Question("q", "Where was the director of Velkarra born?")
PASSAGES = [Passage("p1", "Velkarra was directed by Mira Tolven.", "Velkarra"), Passage("p2", "Mira Tolven: Kestrel.", "Mira")]


def playing(*turns: str) -> Scripted:
    """Says these one after the other, then nothing."""
    left = list(turns)

    def reply(prompt: Prompt) -> Reply:
        del prompt
        return Reply(left.pop(0) if left else "")

    return Scripted(reply)


def made(model: Scripted, **settings: Any) -> SearchR1:
    return SearchR1(model, ScriptedRetriever(PASSAGES), **settings)


async def test_turns_of_the_published_form() -> None:
    model = playing(
        "<think>Who directed it?</think>\n<search> Velkarra director </search> and more",
        "<think>Tolven. Where?</think>\n<search>Mira Tolven birthplace</search>",
        "<think>Kestrel.</think>\n<answer> Kestrel </answer>",
    )
    method = made(model, k=1)
    with events.record() as happened:
        answer = await method(QUESTION)
    assert answer.text == "Kestrel"
    queries = ["Velkarra director", "Mira Tolven birthplace"]
    assert method.retriever.queries == queries  # type: ignore[attr-defined]
    assert [event.subject for event in happened if isinstance(event, events.Decided)] == queries
    second, third = model.prompts[1].answer_so_far, model.prompts[2].answer_so_far
    assert second == (
        "<think>Who directed it?</think>\n<search> Velkarra director </search>\n\n"
        "<information>Doc 1(Title: Velkarra) Velkarra was directed by Mira Tolven.</information>\n\n"
    )
    assert third.startswith(second)
    assert all(prompt.task == TAGS["search_r1"].task for prompt in model.prompts)
    assert {one.id for one in answer.evidence} <= {"p1", "p2"}
    assert answer.rationale.endswith("<answer> Kestrel </answer>")


async def test_a_turn_without_an_action_is_said_to_be_invalid() -> None:
    model = playing("I do not know.", "<answer>Ulm</answer>")
    assert (await made(model)(QUESTION)).text == "Ulm"
    assert model.prompts[1].answer_so_far == "I do not know." + INVALID.format("<search>", "</search>")


async def test_after_the_last_search_it_can_only_answer() -> None:
    model = playing(*["<search>Velkarra</search>"] * 9)
    method = made(model, max_steps=2)
    assert (await method(QUESTION)).text == ""
    assert len(model.prompts) == 3
    assert method.retriever.queries == ["Velkarra"] * 2  # type: ignore[attr-defined]


async def test_the_first_tag_of_a_turn_counts() -> None:
    model = playing("<answer>Ulm</answer> or <search>Velkarra</search>")
    assert (await made(model)(QUESTION)).text == "Ulm"
    model = playing("<search>Velkarra</search><answer>Ulm</answer>", "<answer>Kestrel</answer>")
    assert (await made(model)(QUESTION)).text == "Kestrel"


async def test_the_tags_of_r1_searcher() -> None:
    model = playing("Who? <|begin_of_query|> Velkarra director <|end_of_query|>", "So.</think>\n\n<answer> Kestrel </answer>")
    assert (await made(model, tags="r1_searcher", k=1)(QUESTION)).text == "Kestrel"
    assert model.prompts[0].answer_so_far == "<think>"
    assert model.prompts[1].answer_so_far.endswith(
        "<|end_of_query|>\n\n<|begin_of_documents|>Doc 1(Title: Velkarra) Velkarra was directed by Mira Tolven."
        "<|end_of_documents|>\n\n"
    )


def test_a_thought_that_was_told_apart_is_put_back() -> None:
    assert full_text(Generation("<search>a</search>", thought="Who?")) == "<think>Who?</think>\n<search>a</search>"
    assert full_text(Generation("plain")) == "plain"


def test_a_model_with_other_tasks_is_refused() -> None:
    model = playing()
    model.profile = Profile(tasks=frozenset({"answer"}))
    with pytest.raises(MissingCapability):
        made(model)
