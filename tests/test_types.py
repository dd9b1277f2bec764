"""Records that cross package boundaries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput
from gnothi.types import Generation, Question, StateSpec, Task, Token, encodable
from tests.messages import refused

ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_any_text_can_be_written(text: str) -> None:
    assert len(encodable(text)) == len(text)
    assert encodable(text).encode("utf-8", "strict") == text.encode("utf-8", "replace")


@given(ANY, ANY)
def test_a_reply_can_be_written(text: str, thought: str) -> None:
    reply = Generation(text, (Token(text, -1.0),), thought=thought)
    assert reply.text == reply.tokens[0].text
    (reply.text + reply.thought).encode()


@given(ANY, ANY)
def test_a_question_can_be_written(text: str, other: str) -> None:
    question = Question(text, other, (text, other), (other,))
    for one in (question.id, question.text, *question.answers, *question.choices):
        one.encode()


def test_what_draws_are_seeded_by_is_as_it_was() -> None:
    """Another ``repr`` draws other samples: rows of earlier runs would not come again."""
    told = "Task(name='answer', instruction='', demonstrations=(), answer_label='Answer:')"
    assert repr(Task("answer")) == repr(Task("answer", form="Say {question}")) == told


@pytest.mark.parametrize("wrong", [{"site": "mlp"}, {"position": "last"}])
def test_a_state_that_no_backend_has_is_refused(wrong: dict[str, Any]) -> None:
    with refused(InvalidInput):
        StateSpec(**wrong)
