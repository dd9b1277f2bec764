from __future__ import annotations

from gnothi.errors import InvalidInput
from gnothi.methods.steps.parsing import concludes, read_reply, split_sentences
from gnothi.methods.steps.prompts import REASON, TASKS, ask
from gnothi.signals.replies import reply_says_yes
from gnothi.types import Passage, Question
from tests.messages import refused


def test_tasks_are_complete() -> None:
    assert set(TASKS) == {"reason", "answer", "know", "decompose", "equivalent", "useful", "describe", "revise"}
    for task in TASKS.values():
        assert task.instruction.endswith((".", '"'))
        assert len(task.demonstrations) >= 2


def test_chains_of_thought_end_in_short_answers_with_and_without_passages() -> None:
    assert 6 <= len(REASON.demonstrations) <= 8
    for demonstration in REASON.demonstrations:
        assert read_reply(demonstration.answer).conclusion
        assert len(read_reply(demonstration.answer).conclusion.split()) <= 3
        *steps, conclusion = split_sentences(demonstration.answer)
        assert len(steps) >= 2
        assert concludes(conclusion)
        assert not any(map(concludes, steps))
        if demonstration.choices:
            assert read_reply(demonstration.answer).conclusion in demonstration.choices
    assert 2 <= sum(bool(demonstration.passages) for demonstration in REASON.demonstrations) <= 6


def test_answers_with_passages_can_be_read_there() -> None:
    for name in ("reason", "answer"):
        for demonstration in TASKS[name].demonstrations:
            if demonstration.passages:
                shown = " ".join(passage.text for passage in demonstration.passages)
                answer = read_reply(demonstration.answer).conclusion if name == "reason" else demonstration.answer
                assert answer.removeprefix("the ") in shown


def test_both_replies_are_shown_where_there_are_two() -> None:
    for name in ("know", "equivalent", "useful"):
        assert {reply_says_yes(demonstration.answer) for demonstration in TASKS[name].demonstrations} == {True, False}


def test_ask() -> None:
    question, passage = Question("q", "Which?", choices=("a", "b")), Passage("p", "text")
    prompt = ask(REASON, question, [passage], "So far.")
    assert (prompt.question, prompt.choices, prompt.passages, prompt.answer_so_far) == (
        "Which?",
        ("a", "b"),
        (passage,),
        "So far.",
    )
    with refused(InvalidInput):
        ask(REASON, Question("q", "\t"))
