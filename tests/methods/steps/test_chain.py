from __future__ import annotations

import pytest

from gnothi import events
from gnothi.methods.steps.chain import copies_an_example, only_repeats, reread
from gnothi.signals.replies import normalized
from gnothi.testing.model import Scripted
from gnothi.types import Answer, Decoding, Passage, Question


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
