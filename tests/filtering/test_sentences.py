"""Where sentences end, and what is left of a passage when some of them go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.filtering.sentences import choose, rejoined, sentences_of, split
from gnothi.types import Passage

TABLE = "Bridges by length:\n\n| name | length |\n|---|---|\n| St. Ann. Old | 3.5 km |\n| Vesk | 2 km |\n\nBoth are old."
LIST = "They sell:\n- nails. All sizes.\n- rope\n  and string\n3) lamps\nOpen daily. Closed in Aug. and Sept."


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Dr. J. R. R. Marn lived 3.5 km from St. Mary. He wrote.",
         ["Dr. J. R. R. Marn lived 3.5 km from St. Mary.", "He wrote."]),
        ("en", "The U.S. Army came. See Fig. 3 for more.", ["The U.S. Army came.", "See Fig. 3 for more."]),
        ("en", '"Really?" she asked. Yes!', ['"Really?" she asked.', "Yes!"]),
        ("en", "A line that\nbreaks goes on. The next\none, too.", ["A line that breaks goes on.", "The next one, too."]),
        ("de", "Am 3. Mai kam Herr Dr. Marn. Er blieb.", ["Am 3. Mai kam Herr Dr. Marn.", "Er blieb."]),
        ("en", "今日は晴れです。明日は雨です。", ["今日は晴れです。", "明日は雨です。"]),
        ("en", "यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("en", "هل هذا سؤال؟ نعم هذا جواب.", ["هل هذا سؤال؟", "نعم هذا جواب."]),
        ("en", TABLE,
         ["Bridges by length:", "| name | length |", "| St. Ann. Old | 3.5 km |", "| Vesk | 2 km |", "Both are old."]),
        ("en", "name\tlength\nVesk\t2 km", ["name length", "Vesk 2 km"]),
        ("en", LIST,
         ["They sell:", "- nails. All sizes.", "- rope and string", "3) lamps", "Open daily.", "Closed in Aug. and Sept."]),
        ("en", " \n---\n", []),
    ],
)  # fmt: skip
def test_sentences(language: str, text: str, expected: list[str]) -> None:
    assert list(split(text, language)) == expected


@given(st.text(st.sampled_from("aB1 .?!。|\t\n-")))
def test_no_word_is_lost(text: str) -> None:
    def words(shown: str) -> str:
        return "".join(character for character in shown if character.isalnum())

    found = split(text)
    assert words("".join(found)) == words(text)
    assert all(sentence == " ".join(sentence.split()) and words(sentence) for sentence in found)


@given(st.text(st.sampled_from("ab. \n|-。"), max_size=60), st.text(st.sampled_from("cd. \n"), max_size=30))
def test_kept_whole_a_passage_says_what_it_said(first: str, second: str) -> None:
    passages = [Passage("p", first, "Title"), Passage("q", second)]
    again = rejoined(sentences_of(passages))
    assert [split(one.text) for one in again] == [split(one.text) for one in passages if split(one.text)]
    assert {(one.id, one.title) for one in again} <= {("p", "Title"), ("q", "")}


def test_a_passage_keeps_its_kept_sentences_and_its_form() -> None:
    passage = Passage("p", LIST, "Shop")
    sentences = sentences_of([passage, Passage("q", "Nothing of it. Stays."), Passage("r", "今日は晴れです。明日は雨です。")])
    kept = [sentences[place] for place in (0, 2, 4, 5, 8, 9)]
    assert rejoined(kept) == (
        replace(passage, text="They sell:\n- rope and string\n\nOpen daily. Closed in Aug. and Sept."),
        Passage("r", "今日は晴れです。明日は雨です。"),
    )
    assert sentences[2].passage == Passage("p#2", "- rope and string", "Shop")
    assert rejoined([]) == ()


def test_sentences_are_chosen_best_first() -> None:
    scores = [0.5, 2.0, 1.0, -1.0, 2.0]
    assert choose(scores, lambda score: score > 0) == (1, 4, 2, 0)
    assert choose(scores, lambda score: score > 9) == ()
