"""Lists of quizzes as models write them, and asking them in the order their references allow."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.methods.steps.quizzes import Quiz, Solved, ask_in_order, each_once, parse_quizzes, split_up
from gnothi.testing.model import Scripted
from gnothi.types import Decoding

QUESTION = "Where was the director of Velkarra born?"
WHO, WHERE = "Who directed Velkarra?", "Where was #1 born?"


def texts(reply: str, question: str = QUESTION, at_most: int = 20) -> list[str]:
    return [quiz.text for quiz in parse_quizzes(reply, question, at_most)]


@pytest.mark.parametrize(
    "reply",
    [
        f"1. {WHO}\n2. {WHERE}",
        f" 1. {WHO} 2. {WHERE}",
        f"(1) {WHO} (2) {WHERE}",
        f"1.{WHO}\n2 . {WHERE}",
        f"1) {WHO}\n2) {WHERE}\n",
        f"1: {WHO}\n2: {WHERE}",
        f"Q1: {WHO}\nQ2: {WHERE}",
        f"#1: {WHO}\n#2: {WHERE}",
        f"Sub-question 1: {WHO}\nSub-question 2: {WHERE}",
        f"**1.** {WHO}\n**2.** {WHERE}",
        f'1. "{WHO}"\n2. **{WHERE}**',
        f"- {WHO}\n- {WHERE}",
        f"* {WHO}\n• {WHERE}",
        f"Here are the questions:\n\n1. {WHO}\n\n2. {WHERE}\n\nTogether they answer it.",
        f"1. {WHO}\n1. {WHERE}",
        f"1.\n1. {WHO}\n2. {WHERE}",
    ],
)
def test_lists_as_models_write_them(reply: str) -> None:
    assert texts(reply) == [WHO, WHERE]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "First one has to find out who directed Velkarra. Then where they were born.",
        "no. Where was Feilmhaven born?",
        "1901 saw the film. 2. Nothing else.",
        "1. ",
        "1. ?\n2. !",
        "The answer is 3. Or is it?",
    ],
)
def test_prose_is_no_list(reply: str) -> None:
    assert texts(reply) == []


def test_numbers_within_a_quiz_do_not_split_it() -> None:
    assert texts("1. Who won in 1902. and 2. Bundesliga? 3. Who lost?") == ["Who won in 1902. and 2. Bundesliga? 3. Who lost?"]
    assert texts("1. Is 3.5 more than 2.5? 2. Is #1 so?") == ["Is 3.5 more than 2.5?", "Is #1 so?"]


@pytest.mark.parametrize(
    "reply",
    [
        f"1. {WHO}\n2. Where was #2 born?",
        "1. Who directed #2?\n2. Where was #1 born?",
        "1. Who is #3?\n2. Who is #1?\n3. Who is #2?",
        f"1. {WHO}\n2. Where was #7 born?",
        f"1. {WHO}\n2. Where was #0 born?",
        f"- {WHO}\n- Where was #3 born?",
    ],
    ids=["itself", "circle", "long circle", "missing", "zero", "missing bullet"],
)
def test_references_that_cannot_be_resolved_void_the_list(reply: str) -> None:
    assert texts(reply) == []


def test_references_forwards_are_fine() -> None:
    first, second = parse_quizzes(f"1. Where was #2 born?\n2. {WHO}", QUESTION, 20)
    assert (dict(first.needs), dict(second.needs)) == ({"2": 1}, {})


def test_a_quiz_listed_again_counts_once() -> None:
    first, second = parse_quizzes(f"1. {WHO}\n2. {WHO.upper()}\n3. Where was #2 born?", QUESTION, 20)
    assert (first.text, dict(second.needs)) == (WHO, {"2": 0})
    assert texts("1. Where is #3?\n2. Where is #4?\n3. Who?\n4. Which?") == ["Where is #3?", "Where is #4?", "Who?", "Which?"]


def test_a_list_that_holds_the_question_splits_nothing() -> None:
    assert texts(f"1. {WHO}\n2. {QUESTION.lower()}\n3. Is Velkarra a film?") == [QUESTION]


async def test_what_comes_to_the_same_words_is_asked_once() -> None:
    asked = []

    async def ask(text: str) -> Solved:
        asked.append(text)
        await asyncio.sleep(0)
        return Solved(text, "Ada", "memory")

    quizzes = parse_quizzes(
        "1. Who wrote it?\n2. Who sang it?\n3. Where is #1?\n4. Where is #2?\n5. When was #4?", QUESTION, 20
    )
    solved = await ask_in_order(quizzes, ask)
    assert sorted(asked) == ["When was Ada?", "Where is Ada?", "Who sang it?", "Who wrote it?"]
    assert solved[2] == solved[3]
    assert [one.question for one in each_once(solved)] == ["Who wrote it?", "Who sang it?", "Where is Ada?", "When was Ada?"]


def test_references_go_by_the_numbers_as_written() -> None:
    quizzes = parse_quizzes(f"3. {WHO}\n5. Where was #3 born?", QUESTION, 20)
    assert [dict(quiz.needs) for quiz in quizzes] == [{}, {"3": 0}]
    assert [dict(q.needs) for q in parse_quizzes("1. Who?\n2. Is #01 so?", QUESTION, 20)] == [{}, {"01": 0}]


def test_what_the_question_spells_so_is_no_reference() -> None:
    question = "Which band had the #1 hit of 1969?"
    assert texts("1. Which song was the #1 hit of 1969?\n2. Whose song is it?", question) == [
        "Which song was the #1 hit of 1969?",
        "Whose song is it?",
    ]


def test_too_long_a_list_is_none() -> None:
    listed = "\n".join(f"{number}. Who is number {number}?" for number in range(1, 13))
    assert len(texts(listed, at_most=12)) == 12
    assert texts(listed, at_most=11) == []


def test_number_ten_is_not_number_one() -> None:
    quiz = Quiz("Are #1, #10 and #11 related, and #1's son?", {"1": 0, "10": 9, "11": 10})
    assert quiz.filled({0: "Ada", 9: "Bo #1", 10: "Cy"}) == "Are Ada, Bo #1 and Cy related, and Ada's son?"


@given(st.lists(st.integers(1, 120), min_size=1, max_size=8), st.data())
def test_filling_agrees_with_replacing_the_longest_numbers_first(numbers: list[int], data: st.DataObject) -> None:
    text = " and ".join(f"#{number}" for number in numbers)
    answers = {number: data.draw(st.text("abc ", max_size=5)) for number in numbers}
    expected = text
    for number in sorted(answers, reverse=True):
        expected = expected.replace(f"#{number}", answers[number])
    assert Quiz(text, {str(number): number for number in numbers}).filled(answers) == expected


@given(st.text())
def test_any_reply_can_be_read(reply: str) -> None:
    for quiz in parse_quizzes(reply, QUESTION, 20):
        assert quiz.text.strip()


@given(st.lists(st.lists(st.integers(0, 11), max_size=3), min_size=1, max_size=12))
def test_what_is_accepted_can_be_asked(graph: list[list[int]]) -> None:
    """Accepted exactly when repeatedly taking what needs nothing (left) takes all: another test for circles."""
    listed = "\n".join(
        f"{place + 1}. Is letter {chr(97 + place)} it {' '.join(f'#{n + 1}' for n in needs)}?"
        for place, needs in enumerate(graph)
    )
    left = {place: set(needs) for place, needs in enumerate(graph)}
    sound = all(need < len(graph) for needs in graph for need in needs)
    while free := [place for place, needs in left.items() if not needs & left.keys()]:
        for place in free:
            del left[place]
    quizzes = parse_quizzes(listed, QUESTION, 12)
    assert bool(quizzes) is (sound and not left)
    if quizzes:
        order: list[str] = []

        async def answer(text: str) -> Solved:
            order.append(text)
            return Solved(text, f"answer {len(order)}", "memory")

        solved = asyncio.run(ask_in_order(quizzes, answer))
        assert len(solved) == len(graph)
        for quiz, one in zip(quizzes, solved, strict=True):
            assert not re.search(r"#\d", one.question)
            assert all(solved[place].answer in one.question for place in quiz.needs.values())


async def test_each_quiz_starts_as_soon_as_what_it_needs_is_answered() -> None:
    quizzes = parse_quizzes("1. A?\n2. B?\n3. C #1?\n4. D #2?\n5. E #3 #4?", QUESTION, 20)
    gates = {letter: asyncio.Event() for letter in "ABCDE"}
    begun: list[str] = []

    async def answer(text: str) -> Solved:
        begun.append(text)
        await gates[text[0]].wait()
        return Solved(text, text[0].lower(), "memory")

    task = asyncio.ensure_future(ask_in_order(quizzes, answer))

    async def after(opened: str) -> list[str]:
        for letter in opened:
            gates[letter].set()
        for _ in range(10):
            await asyncio.sleep(0)
        return begun

    assert await after("") == ["A?", "B?"]
    assert await after("A") == ["A?", "B?", "C a?"]  # though B is not answered
    assert await after("C") == ["A?", "B?", "C a?"]
    assert await after("B") == ["A?", "B?", "C a?", "D b?"]
    assert await after("DE") == ["A?", "B?", "C a?", "D b?", "E c d?"]
    assert [one.answer for one in await task] == list("abcde")


async def test_what_refers_to_an_unknown_answer_is_not_asked() -> None:
    quizzes = parse_quizzes("1. A?\n2. B #1?\n3. C #2?\n4. D?", QUESTION, 20)
    asked: list[str] = []

    async def answer(text: str) -> Solved:
        asked.append(text)
        return Solved(text, "unknown", "nothing") if text == "A?" else Solved(text, "d", "memory")

    with events.record() as recorded:
        solved = await ask_in_order(quizzes, answer)
    assert asked == ["A?", "D?"]
    assert [one.answer for one in solved] == ["unknown", "unknown", "unknown", "d"]
    answered = [event for event in recorded if isinstance(event, events.QuizAnswered)]
    assert sorted(event.number for event in answered) == [1, 2, 3, 4]
    assert {event.number: event.source for event in answered} == {1: "nothing", 2: "nothing", 3: "nothing", 4: "memory"}


async def test_one_failure_ends_all_and_leaves_nothing_behind() -> None:
    tasks = asyncio.all_tasks()

    async def answer(text: str) -> Solved:
        if text == "B?":
            raise ConnectionError("gone")
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(ConnectionError):
        await ask_in_order(parse_quizzes("1. A?\n2. B?\n3. C #1 #2?\n4. D #1?", QUESTION, 20), answer)
    assert asyncio.all_tasks() == tasks


@pytest.mark.parametrize(
    ("reply", "quizzes", "used"),
    [(f"1. {WHO}\n2. {WHERE}", (WHO, WHERE), True), ("I do not know.", (QUESTION,), False)],
)
async def test_splitting_up_shows_what_came_of_it(reply: str, quizzes: tuple[str, ...], used: bool) -> None:
    with events.record() as recorded:
        found = await split_up(Scripted(lambda _: reply), QUESTION, Decoding(), 20)
    assert tuple(quiz.text for quiz in found) == quizzes
    assert recorded == [events.Decomposed(QUESTION, quizzes, used)]
