from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.methods.steps.repetition import adds_nothing, until_it_repeats


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("He is Canadian-born, Canadian-born, Canadian-born, Canadian", "He is Canadian-born,"),
        ("She was born in Ulm. She was born in Ulm. So", "She was born in Ulm."),
        ("a member of the board, a member of the board", "a member of the board,"),
        ("New York, New York is very very big", "New York, New York is very very big"),
        ("New York New York New York", "New York"),
        ("He that is born is he that is born", "He that is born is he that is born"),
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
