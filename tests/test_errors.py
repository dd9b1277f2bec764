"""What is wrong with data, in words."""

from __future__ import annotations

import pytest

from gnothi.errors import InvalidSetting, malformation


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("format"), "'format' is missing"),
        (KeyError("weights is not a file in the archive"), "weights is not a file in the archive"),
        (KeyError(), "a part is missing or of the wrong type"),
        (ValueError("format 7, this version reads 3."), "format 7, this version reads 3"),
        (TypeError("'int' object is not iterable"), "a part is missing or of the wrong type"),
        (OverflowError("cannot convert float infinity to integer"), "a number is too large"),
        (RecursionError("maximum recursion depth exceeded"), "it is nested too deeply"),
        (EOFError(), "a part is missing or of the wrong type"),
        (InvalidSetting("setting 'stopping': got 'x', expected a share."), "setting 'stopping': got 'x', expected a share"),
    ],
)
def test_malformation(error: Exception, said: str) -> None:
    assert malformation(error) == said
