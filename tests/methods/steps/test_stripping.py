from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.methods.steps.parsing import short_answer
from gnothi.signals.replies import normalized

NAMES = st.from_regex(r"[B-Z][a-z]{4,9}z", fullmatch=True)  # so that none is one of the words that say nothing
TWO = st.lists(NAMES, min_size=2, max_size=2, unique_by=lambda name: name.casefold())


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        ("What is the capital of France?", "The capital of France is Paris.", "Paris"),
        ("What is the capital of France?", "Paris is the capital of France.", "Paris"),
        ("What is the capital of France?", "Answer: Paris", "Paris"),
        ("What is the capital of France?", "Sure!\nSo the answer is Paris.", "Paris"),
        ("What is Odile Varr's occupation?", "Odile Varr was a British engineer who lived on an island.", "British engineer"),
        ("What is Odile Varr's occupation?", "Odile Varr's occupation is engineer.", "engineer"),
        ("In what city was Oscar Wilde born?", "Oscar Wilde was born in Dublin, Ireland.", "Dublin, Ireland"),
        ("Into which sea does the Danube flow?", "The Danube flows into the Black Sea.", "Black Sea"),
        ("Who wrote Emma?", "Emma was written by Jane Austen.", "Jane Austen"),
        ("Who wrote Emma?", "Jane Austen wrote Emma.", "Jane Austen"),
        ("When did he die?", "He died in 1900.", "1900"),
        # Left alone: no verb, nothing beyond the question, a verdict, something else.
        ("Which river flows through Basel?", "the river Rhine", "the river Rhine"),
        ("What wine is it?", "a red wine", "a red wine"),
        ("What did he write?", "The Man Who Was Thursday", "The Man Who Was Thursday"),
        ("In what city was Oscar Wilde born?", "Oscar Wilde was born in the city.", "Oscar Wilde was born in the city"),
        ("Is Emma a novel?", "Emma is a fine novel.", "Emma is a fine novel"),
        ("Who wrote Emma?", "...", ""),
        ("Who wrote Emma?", "...\nJane Austen", "Jane Austen"),
        ("Which sign stands for a sum?", "+", "+"),
    ],
)
def test_short_answers_of_chatty_replies(question: str, reply: str, answer: str) -> None:
    assert short_answer(reply, question) == answer


@given(TWO, st.sampled_from(("The mayor of {0} is {1}.", "{1} is the mayor of {0}.", "{1}", "So the answer is {1}.")))
def test_what_is_new_is_the_answer_wherever_it_stands(names: list[str], form: str) -> None:
    assert short_answer(form.format(*names), f"Who is the mayor of {names[0]}?") == names[1]


@given(st.text(), st.text(min_size=1))
def test_a_reply_that_says_something_is_never_blanked_nor_made_punctuation(reply: str, question: str) -> None:
    answer = short_answer(reply, question)
    first = next((line for line in reply.splitlines() if normalized(line)), "")
    assert answer == answer.strip()
    if normalized(first).strip() and "answer is" not in normalized(reply):
        assert any(character not in " .,;:!?" for character in answer)


@given(st.lists(st.sampled_from("Odile Varr was is the in born of city town Dublin a".split()), min_size=1).map(" ".join))
def test_what_is_left_is_part_of_the_reply_and_not_the_subject_alone(reply: str) -> None:
    answer = short_answer(reply, "In what city was Odile Varr born?")
    assert answer in reply
    if "Dublin" in reply or "town" in reply:
        assert answer not in ("Odile", "Varr", "Odile Varr")
