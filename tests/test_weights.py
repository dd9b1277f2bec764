from __future__ import annotations

import pytest

from gnothi.weights import reason


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("no such file", "no such file"),
        (
            "Error(s) in loading state_dict:\n\tsize mismatch for a.b\n\tsize mismatch for c.d",
            "Error(s) in loading state_dict: size mismatch for c.d",
        ),
        ("\n  first  line \n\n more\n\n-----\n last\tline \n\n", "first line last line"),
        ("same\nsame", "same"),
        ("\x1b[1mbold\x1b[0m", "bold"),
        ("", "ValueError"),
        (" \n---\n", "ValueError"),
        (
            "needs trust_remote_code=True",
            "it comes with Python code of its own (auto_map in its config.json), which is never run: ",
        ),
    ],
)
def test_what_a_library_said(message: str, said: str) -> None:
    assert reason(ValueError(message)).startswith(said)
    assert len(reason(ValueError(message))) < 200


def test_long_lines_keep_both_ends() -> None:
    said = reason(ValueError(f"begin {'x' * 9_000} middle\n{'y' * 9_000} end"))
    assert said.startswith("begin x")
    assert said.endswith("y end")
    assert len(said) < 700
