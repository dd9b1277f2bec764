from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.methods.steps.parsing import as_choice, concludes, concluding, final_answer, sentence, short_answer, split_sentences

names = st.from_regex(r"[A-Z][a-z]{1,8}( [A-Z][a-z]{1,8}){0,2}", fullmatch=True)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Mira was born in Kestrel. So the answer is Kestrel.", "Kestrel"),
        ("So the answer is: Kestrel", "Kestrel"),
        ("So the final answer is Kestrel.", "Kestrel"),
        ("THE ANSWER IS KESTREL.", "KESTREL"),
        ("So the answer is 12,500 BC.", "12,500 BC"),
        ("So the answer is 3.5 km. It is far.", "3.5 km"),
        ("So the answer is J. R. R. Tolkien. He wrote.", "J. R. R. Tolkien"),
        ("So the answer is Dr. Odile Varr.", "Dr. Odile Varr"),
        ("So the answer is The Operation M.D..", "The Operation M.D."),
        ('So the answer is "Kestrel".', "Kestrel"),
        ('So the answer is "Kestrel."', "Kestrel"),
        ("So the answer is no. Both are rivers.", "no"),
        ("So the answer is Kestrel.\nQuestion: next", "Kestrel"),
        ("So the answer is Kestrel. So the answer is Orvel.", "Kestrel"),
        ("So the answer is", ""),
        ("So the answer is .", ""),
        ("So the answer is So the answer is So the answer is", ""),
        ("So the answer is Kestrel So the answer is", "Kestrel"),
        ("So the answer is The Answer.", "The Answer"),
        ("Mira was born in Kestrel.", ""),
        ("They answered the question.", ""),
        ("", ""),
    ],
)
def test_final_answer(reply: str, answer: str) -> None:
    assert final_answer(reply) == answer


@given(st.lists(names, max_size=3), names)
def test_what_a_chain_concludes_is_found(people: list[str], name: str) -> None:
    chain = [f"{person} was seen in town." for person in people]
    assert final_answer(" ".join([*chain, f"So the answer is {name}."])) == name
    assert final_answer(f"{concluding(*chain)} {name}.") == name


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Kestrel", "Kestrel"),
        (" Kestrel.\n", "Kestrel"),
        ("\nKestrel", "Kestrel"),
        ("Kestrel. And", "Kestrel"),
        ("", ""),
        ("'O'", "O"),
    ],
)
def test_short_answer(reply: str, answer: str) -> None:
    assert short_answer(reply) == answer


@given(st.text(max_size=60))
def test_any_text_is_read_without_complaint(text: str) -> None:
    for result in (short_answer(text), final_answer(text), sentence(text)):
        assert result == result.strip()
        assert "\n" not in result
    assert sentence(sentence(text)) == sentence(text)
    assert "".join(" ".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("It is", "It is."), (" It\n is. ", "It is."), ("Is it?", "Is it?"), ("", ""), ("  ", "")],
)
def test_sentence_regains_its_full_stop(text: str, expected: str) -> None:
    assert sentence(text) == expected


def test_concludes() -> None:
    assert concludes("So the answer is Kestrel.")
    assert concludes("Thus, the final answer is no.")
    assert not concludes("The answers are known.")


def test_as_choice() -> None:
    assert as_choice("the kestrel", ("Orvel", "Kestrel!")) == "Kestrel!"
    assert as_choice("Dunmere", ("Orvel", "Kestrel")) == "Dunmere"
    assert as_choice("Dunmere", ()) == "Dunmere"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", "mall"),
        ("b", "mall"),
        ("(B)", "mall"),
        ("B.", "mall"),
        ("b) Mall!", "mall"),
        ("Option B", "mall"),
        ("B: bank", "B: bank"),  # letter and text disagree
        ("D", "D"),
        ("A. Lincoln", "A. Lincoln"),
        ("Wait", "Wait. Then ask"),
        ("Look", "Look"),  # two choices begin with it
    ],
)
def test_as_choice_by_label_or_first_sentence(answer: str, expected: str) -> None:
    choices = ("bank", "mall", "Wait. Then ask")
    assert as_choice(answer, (*choices, "Look. Go", "Look. Stay") if answer == "Look" else choices) == expected


def test_a_choice_that_is_a_letter_or_has_no_letters_is_itself() -> None:
    assert as_choice("a", ("C", "A", "B")) == "A"
    assert as_choice("↓ ↑", ("↑ ↓", "↓ ↑")) == "↓ ↑"


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5), st.data())
def test_every_choice_names_itself(choices: list[str], data: st.DataObject) -> None:
    choice = data.draw(st.sampled_from(choices))
    assert as_choice(choice, choices) == choice
