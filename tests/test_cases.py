from __future__ import annotations

import pytest

from tests.cases import each


def test_all_that_fail_are_named() -> None:
    tried = []

    def check(name: str, number: int) -> None:
        tried.append(name)
        assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError, match=r"(?s)^2 of 3 cases failed:\nb, 2: 2 is even.*\nc, 4: 4 is even"):
        each(check, [("a", 1), ("b", 2), ("c", 4)])
    assert tried == ["a", "b", "c"]
    each(check, [("a", 1)])


def test_an_error_says_in_which_case() -> None:
    with pytest.raises(ValueError, match="x") as raised:
        each(int, [("3",), ("x",)])
    assert raised.value.__notes__ == ["in the case x"]


def test_no_case_is_no_success() -> None:
    with pytest.raises(AssertionError, match="no case was tried"):
        each(int, [])
