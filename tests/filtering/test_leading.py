from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.filtering.leading import cxmi, includes, overlap
from gnothi.filtering.sentences import sentences_of
from gnothi.methods.steps.prompts import ANSWER
from gnothi.metrics import f1
from gnothi.testing.model import Scripted
from gnothi.types import Passage, Prompt


@pytest.mark.parametrize(
    ("text", "targets", "held"),
    [
        ("She was born in Kestrel.", ["kestrel"], True),
        ("She was born in New Kestrel City.", ["The New Kestrel"], True),
        ("She was born in Kestrelby.", ["Kestrel"], False),
        ("She was born in Kestrel.", ["Vesk", "Kestrel!"], True),
        ("She was born.", [""], False),
        ("She was born.", [], False),
    ],
)
def test_includes(text: str, targets: list[str], held: bool) -> None:
    assert includes(text, targets) == held


WORDS = st.lists(st.sampled_from("kestrel vesk born painter town".split()), max_size=6).map(" ".join)


@given(WORDS, WORDS)
def test_overlap_is_the_f1_of_answers(one: str, other: str) -> None:
    assert overlap(one, other) == overlap(other, one)
    if one and other:
        assert overlap(one, other) == pytest.approx(f1(one, [other]))


async def test_cxmi_by_hand() -> None:
    def scorer(prompt: Prompt, continuation: str) -> float:
        assert continuation == "Kestrel"
        return math.log(
            {"": 0.1, "Born in Kestrel.": 0.5, "A painter.": 0.05}[prompt.passages[0].text if prompt.passages else ""]
        )

    model = Scripted(lambda _: "", scorer=scorer)
    sentences = sentences_of([Passage("p", "Born in Kestrel. A painter.")])
    scores = await cxmi(model, Prompt(ANSWER, "Where?"), "Kestrel", sentences)
    assert scores == pytest.approx([math.log(5), math.log(0.5)])
