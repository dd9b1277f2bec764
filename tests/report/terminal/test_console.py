"""What all commands print with."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gnothi.report.terminal import console as terminal


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"é": np.float32(0.5), "n": np.int64(3), "none": None})
    assert json.loads(capsys.readouterr().out) == {"é": 0.5, "n": 3, "none": None}


def test_json_refuses_what_json_cannot_say() -> None:
    with pytest.raises(ValueError, match="JSON"):
        terminal.print_json(float("inf"))
    with pytest.raises(TypeError, match="set is not JSON"):
        terminal.print_json({1, 2})


def test_definitions_wrap_beside_their_terms() -> None:
    lines = terminal.definitions([("k", "word " * 30), ("a_term_longer_than_the_column", "text")])
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("  k")
    assert lines[-2:] == ["  a_term_longer_than_the_column", " " * 30 + "text"]


def test_wide_letters_take_two_columns() -> None:
    assert terminal.cut("知" * 10, 11) == "知知知知..."
    assert terminal.wrap("知" * 4, 4) == ["知知", "知知"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert terminal.clean("a\x1b[31mb\tc\n") == "a\N{REPLACEMENT CHARACTER}[31mb c"
