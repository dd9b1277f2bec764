from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.methods.steps.repetition import adds_nothing, copies_an_example, only_repeats, reread, until_it_repeats
from gnothi.signals.replies import normalized
from gnothi.testing.model import Scripted
from gnothi.types import Answer, Decoding, Passage, Question


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("He is Canadian-born, Canadian-born, Canadian-born, Canadian", "He is Canadian-born,"),
        ("British-Irish-Irish-Irish-Irish", "British-Irish"),
        ("in 1939-1945 and 1914-1918 --- the wars", "in 1939-1945 and 1914-1918 --- the wars"),
        ("She was born in Ulm. She was born in Ulm. So", "She was born in Ulm."),
        ("a member of the board, a member of the board", "a member of the board,"),
        ("New York, New York is very very big", "New York, New York is very very big"),
        ("New York New York New York", "New York"),
        ("He that is born is he that is born", "He that is born is he that is born"),
        ("about 200.200.200.200.200.200.200 miles", "about 200."),
        ("1,000,000,000,000 or 33.333.333.333", "1,000,000,000,000 or 33.333.333.333"),
        ("hahahahahahahaha", "ha"),
        ("1000000000000000 and 111111111111111", "1000000000000000 and 111111111111111"),
        ("1,000,000,000,000,000,000,000,000,000", "1,000,000,000,000,000,000,000,000,000"),
        ("see ............ below", "see ............ below"),
        ("", ""),
    ],
)
def test_until_it_repeats(text: str, kept: str) -> None:
    assert until_it_repeats(text) == kept


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("cdefg"), min_size=1, max_size=16, unique=True))
def test_whatever_goes_round_is_said_once(before: list[str], round: list[str]) -> None:
    kept = until_it_repeats(" ".join([*before, *round * 3])).split()
    assert len(kept) <= len(before) + len(round)
    assert [*before, *round][: len(kept)] == kept
    assert until_it_repeats(" ".join(kept)).split() == kept


@pytest.mark.parametrize(
    ("sentence", "chain", "nothing"),
    [
        ("Mira was born in Ulm.", [], False),
        ("She was born in Ulm.", ["Mira was born in Ulm."], True),
        ("Ulm is a town.", ["Mira was born in Ulm."], False),
        ("It was.", ["Mira was born in Ulm."], True),
    ],
)
def test_adds_nothing(sentence: str, chain: list[str], nothing: bool) -> None:
    assert adds_nothing(sentence, chain) is nothing


@pytest.mark.parametrize(
    ("answer", "question", "repeats"),
    [
        ("Mira Tolven", "Where was Mira Tolven born?", True),
        ("the Tolven.", "Where was Mira Tolven born?", True),
        ("Mira", "Where was Mirador born?", False),
        ("Kestrel", "Where was Mira Tolven born?", False),
        ("..", "Where was Mira Tolven born?", True),
        ("Mira", "Who is older, Mira or Ann?", False),
        ("", "Who is older, Mira or Ann?", True),
        ("old", "Is Mira old?", False),
        ("Mira Tolven", "What is Mira Tolven's occupation?", True),
        ("Tolven's occupation", "What is Mira Tolven’s occupation?", True),
        ("born Mira", "Where was Mira Tolven born?", True),
        ("Mira", "Which of Ann and Mira is older?", False),
        ("Mira", "Between Ann, Otto, Mira: who is older?", False),
        ("Ann Bell", "Where did Ann Bell and her sister live?", True),
    ],
)
def test_only_repeats(answer: str, question: str, repeats: bool) -> None:
    assert only_repeats(answer, Question("q", question)) is repeats
    assert only_repeats(answer, Question("q", question, choices=("Mira", "Ann"))) is (not normalized(answer))


async def test_what_only_repeats_is_asked_at_once() -> None:
    passage, question = Passage("p", "Mira was born in Kestrel."), Question("q", "Where was Mira born?")
    model = Scripted(lambda _: "Kestrel. It is")
    other = Passage("o", "Ulm is a town.")
    for text, evidence, expected in (
        ("Mira", (other, passage), "Kestrel"),
        ("Mira", (), "Kestrel"),
        ("Vennick", (passage,), "Vennick"),
    ):
        with events.record() as seen:
            found = await reread(model, question, Answer(text, "why", evidence, 0.5), Decoding())
        assert found == Answer(expected, "why", evidence, 0.5)
        told = [(one.kind, one.verdict, one.subject) for one in seen if isinstance(one, events.Decided)]
        assert told == ([("answer", "repeats", "Mira")] if text == "Mira" else [])
    assert [(prompt.task.name, prompt.passages) for prompt in model.prompts] == [("answer", (passage,)), ("answer", ())]


@pytest.mark.parametrize(
    ("answer", "question", "read", "copies"),
    [
        ("Agathe Sorn", "What is Mira's occupation?", ("Mira mends clocks.",), True),
        ("the forint.", "What is Mira's occupation?", ("Mira mends clocks.",), True),
        ("the forint", "What is paid in Budapest?", (), False),
        ("Agathe Sorn", "Who mended clocks?", ("Agathe Sorn mended clocks.",), False),
        ("Agathe Sorn", "Who is older, Agathe Sorn or Mira?", ("Mira mends clocks.",), False),
        ("clockmaker", "What is Mira's occupation?", ("Mira mends clocks.",), False),
        ("no", "What is Mira's occupation?", ("Mira mends clocks.",), True),
        ("no", "Is Mira a clockmaker?", ("Mira mends clocks.",), False),
        ("", "What is Mira's occupation?", (), False),
    ],
)
async def test_what_copies_a_worked_example_is_asked_at_once(
    answer: str, question: str, read: tuple[str, ...], copies: bool
) -> None:
    given = Answer(answer, "why", tuple(Passage(f"p{n}", text) for n, text in enumerate(read)))
    asked = Question("q", question)
    assert copies_an_example(given, asked) is copies
    assert not copies_an_example(given, Question("q", question, choices=("Agathe Sorn", "no")))
    model = Scripted(lambda _: "clockmaker")
    with events.record() as seen:
        found = await reread(model, asked, given, Decoding())
    told = [one.verdict for one in seen if isinstance(one, events.Decided)]
    if answer:
        assert (found.text, told) == (("clockmaker", ["copies"]) if copies else (answer, []))


async def test_a_circle_of_conclusions_that_name_nothing_is_asked_at_once() -> None:
    question = Question("q", "Who is older, Ann or Mira?")
    model = Scripted(lambda _: "Mira")
    circle = Answer("So the answer is So the answer is So the answer is", "why")
    assert (await reread(model, question, circle, Decoding())).text == "Mira"
    named = Answer('"Scooter" and "A Good Day" So the answer is "Scooter" and "A Good Day" So the answer is', "why")
    assert (await reread(model, question, named, Decoding())).text == '"Scooter" and "A Good Day"'
    assert len(model.prompts) == 1
