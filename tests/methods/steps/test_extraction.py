"""Answers cut out of replies as the authors' code cuts them: ours beside theirs on text like that of models."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gnothi.methods.steps.extraction import EXTRACTIONS, before_notes
from gnothi.methods.steps.parsing import read_reply
from tests.methods.oracles.authors import function

WORDS = [
    "It",
    "is",
    "Nairobi, Kenya",
    "15,140",
    "3.5 km",
    "the",
    "answer is",
    "The answer is",
    "So the answer is",
    "the final answer is",
    "Note:",
]
WORDS += ["yes", "No", "J. R. R. Vesk", "is the answer", ":", ".", ". ", ", ", "?", "!", "\n", "\n\n", "in 1902", "km", ""]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def test_the_published_cuts_of_a_comma_and_a_number() -> None:
    chain = "It lies there. So the answer is {}."
    cut = {
        name: [one.concluded(chain.format(text)) for text in ("Nairobi, Kenya", "15,140")] for name, one in EXTRACTIONS.items()
    }
    assert cut["seakr"] == ["nairobi", "15"]
    assert cut["gnothi"] == cut["dragin"] == cut["ircot"] == cut["keqa"] == ["Nairobi, Kenya", "15,140"]
    assert cut["flare"] == ["Nairobi, Kenya.", "15,140."]
    assert cut["whole"] == [chain.format("Nairobi, Kenya"), chain.format("15,140")]


@given(TEXTS)
def test_ours_is_what_it_was(text: str) -> None:
    ours = EXTRACTIONS["gnothi"]
    assert ours.concluded(text) == read_reply(" ".join(text.split())).conclusion
    assert ours.short(text, "Where?") == read_reply(text, "Where?").answer


@given(TEXTS)
def test_seakrs_is_the_authors(text: str) -> None:
    theirs = function("THU-KEG/SeaKR", "main_simpleqa.py", "get_answer", {"re": re})
    assert EXTRACTIONS["seakr"].concluded(text) == (theirs(text) or "")


@given(TEXTS)
def test_keqas_is_the_authors(text: str) -> None:
    theirs = function("l-xin/KEQA", "src/utils.py", "extract_answer", {"re": re})
    assert EXTRACTIONS["keqa"].concluded(text) == theirs(text)
    assert EXTRACTIONS["keqa"].short(text, "") == function("l-xin/KEQA", "src/utils.py", "get_first_line", {})(text)


@given(TEXTS.filter(lambda text: "the answer is" in before_notes(text)))
def test_dragins_is_the_authors(text: str) -> None:
    before = function("oneal2000/DRAGIN", "src/eval.py", "regenerate_answer", {})
    theirs = function("oneal2000/DRAGIN", "src/data.py", "HotpotQA.get_real_prediction", {})
    assert EXTRACTIONS["dragin"].concluded(text) == theirs(None, before(text, None, None, "", [])).strip()
