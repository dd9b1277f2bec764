"""Records that cross package boundaries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gnothi.types import Question, Task, encodable

ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_any_text_can_be_written(text: str) -> None:
    assert len(encodable(text)) == len(text)
    assert encodable(text).encode("utf-8", "strict") == text.encode("utf-8", "replace")


@given(ANY, ANY)
def test_a_question_can_be_written(text: str, other: str) -> None:
    question = Question(text, other, (text, other), (other,))
    for one in (question.id, question.text, *question.answers, *question.choices):
        one.encode()


def test_what_draws_are_seeded_by_is_as_it_was() -> None:
    """Another ``repr`` draws other samples: rows of earlier runs would not come again."""
    told = "Task(name='answer', instruction='', demonstrations=(), answer_label='Answer:')"
    assert repr(Task("answer")) == repr(Task("answer", form="Say {question}")) == told
