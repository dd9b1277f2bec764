from __future__ import annotations

import re

import pytest

from tests.cases import each
from tests.messages import refused


def test_all_that_fail_are_named() -> None:
    tried = []

    def check(name: str, number: int) -> None:
        tried.append(name)
        assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError) as raised:
        each(check, [("a", 1), ("b", 2), ("c", 4)])
    assert re.match(r"2 of 3 cases failed:\nb, 2: 2 is even\n(?s:.*)\nc, 4: 4 is even", str(raised.value))
    assert tried == ["a", "b", "c"]
    each(check, [("a", 1)])


def test_an_error_says_in_which_case() -> None:
    with refused(ValueError) as raised:
        each(int, [("3",), ("x",)])
    assert raised.value.__notes__ == ["in the case x"]


def test_no_case_is_no_success() -> None:
    with refused(AssertionError):
        each(int, [])
