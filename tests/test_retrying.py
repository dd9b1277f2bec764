from __future__ import annotations

import random
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.retrying import FIRST_WAIT, LONGEST_WAIT, asked_to_wait, backoff, worth_another_try


@given(st.integers(1, 1000), st.integers())
def test_waits_double_up_to_a_limit_with_half_left_to_chance(failures: int, seed: int) -> None:
    whole = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures - 1, 100))
    assert whole / 2 <= backoff(failures, random.Random(seed)) <= whole


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30),
        ({"retry-after": formatdate(900_000, usegmt=True)}, 0),
    ],
)
def test_what_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_to_wait(headers, now=1_000_000) == seconds


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached for x on tokens per min: Limit 30000. Please try again in 2.5s. Visit the page.", 2.5),
        ("Quota exceeded. Please retry in 34.5s.", 34.5),
        ("Please try again in 7m6.5s", 426.5),
        ("Please try again in 120ms.", 0.12),
        ("Too many requests. Please retry after 26 seconds.", 26),
        ("try again in 2 hours 1 minute", 7260),
        ("try again in 450 milliseconds", 0.45),
        ("Please try again later", None),
        ("try again in 3 days", None),
    ],
)
def test_what_a_server_asks_for_in_words(words: str, seconds: float | None) -> None:
    assert asked_to_wait({}, words) == (None if seconds is None else pytest.approx(seconds))
    assert asked_to_wait({"retry-after": "7"}, words) == 7


@given(st.text())
def test_no_header_breaks_it(text: str) -> None:
    seconds = asked_to_wait({"retry-after": text})
    assert seconds is None or seconds >= 0


def test_which_statuses() -> None:
    assert all(worth_another_try(status) for status in (408, 409, 429, 500, 502, 503, 504, 529))
    assert not any(worth_another_try(status) for status in (400, 401, 403, 404, 413, 422))
