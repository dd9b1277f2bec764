from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gnothi import events
from gnothi.filtering.answers import Candidate, least_uncertain
from gnothi.signals.replies import says_nothing

INF = float("inf")


def test_the_lower_uncertainty_wins_and_is_reported() -> None:
    with events.record() as recorded:
        best = least_uncertain([Candidate("rationales", "Orvel", -4.7), Candidate("knowledge", "Kestrel", -6.2)])
    assert best.text == "Kestrel"
    assert recorded == [events.Ranked("answer", (("knowledge", "Kestrel", -6.2), ("rationales", "Orvel", -4.7)))]


def test_empty_and_unknown_lose_whatever_their_uncertainty() -> None:
    for nothing in ("", "unknown", "Unknown.", "I don't know"):
        pair = [Candidate("rationales", nothing, -6.9), Candidate("knowledge", "Kestrel", INF)]
        assert least_uncertain(pair).text == "Kestrel"
        assert least_uncertain(pair[:1]).text == nothing


@given(
    st.lists(st.tuples(st.sampled_from(["", "unknown", "a", "b"]), st.floats(-7, 10) | st.just(INF)), min_size=1, max_size=5)
)
def test_the_winner_is_first_in_the_order(pairs: list[tuple[str, float]]) -> None:
    candidates = [Candidate(str(number), text, value) for number, (text, value) in enumerate(pairs)]
    best = least_uncertain(candidates)
    speaking = [one for one in candidates if not says_nothing(one.text)] or candidates
    assert best is min(speaking, key=lambda one: one.uncertainty)
