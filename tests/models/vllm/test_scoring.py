from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gnothi.models.vllm.scoring import NAMED, assemble, questions

TOKENS = st.lists(st.integers(0, 3), max_size=5)


def test_what_is_shared_is_asked_once() -> None:
    assert questions([[5], [6], [5]]) == [((), [5, 6])]
    assert questions([[5, 7], [5, 8], []]) == [((), [5]), ((5,), [7, 8])]
    assert questions([]) == []


def test_long_lists_of_names_are_split() -> None:
    asked = questions([[token] for token in range(NAMED + 1)])
    assert [len(named) for _, named in asked] == [NAMED, 1]


@given(st.lists(TOKENS, max_size=6))
def test_the_replies_make_up_every_continuation(continuations: list[list[int]]) -> None:
    replies = {
        (prefix, token): -float(hash((prefix, token)) % 97) for prefix, named in questions(continuations) for token in named
    }
    scores = assemble(continuations, replies)
    assert [len(score) for score in scores] == [len(tokens) for tokens in continuations]
    for tokens, score in zip(continuations, scores, strict=True):
        for at, (token, number) in enumerate(zip(tokens, score, strict=True)):
            assert number == replies[tuple(tokens[:at]), token]
