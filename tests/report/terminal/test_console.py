"""What all commands print with."""

from __future__ import annotations

import io
import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gnothi.report.terminal import console as terminal


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"é": np.float32(0.5), "n": np.int64(3), "none": None})
    assert json.loads(capsys.readouterr().out) == {"é": 0.5, "n": 3, "none": None}


def test_json_is_utf_8_or_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another encoding writes them, letters would be lost or no JSON."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", errors="replace")
    monkeypatch.setattr("sys.stdout", screen)
    terminal.print_json({"é": "灯台守 𝒳"})
    screen.flush()
    assert json.loads(screen.buffer.getvalue().decode("ascii")) == {"é": "灯台守 𝒳"}


def test_json_says_null_for_what_it_cannot_say(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"threshold": float("-inf"), "score": [float("nan"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"threshold": None, "score": [None, 1.5]}


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


@given(st.text())
def test_json_does_not_steer_the_terminal_and_says_the_same(text: str) -> None:
    written = terminal.json_text({"a": [text]}, indent=2)
    assert json.loads(written) == {"a": [text]}
    assert not {letter for letter in written if not letter.isprintable()} - {"\n"}


def test_what_takes_long_at_opening_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each where there is no terminal, and how far it is on a terminal alone."""
    log, out = logging.getLogger("gnothi.opening"), io.StringIO()
    with terminal.Waiting("opening ..."):
        log.info("reading some.gguf")
        log.debug("reading some.gguf: 40 %")
    with terminal.Waiting("opening ...", Console(file=out, force_terminal=True)):
        log.debug("reading some.gguf: 40 %")
    log.info("after that nobody listens")
    assert capsys.readouterr().err == "reading some.gguf\n"
    assert "40 %" in out.getvalue()


def test_a_warning_at_opening_stays(capsys: pytest.CaptureFixture[str]) -> None:
    log, out = logging.getLogger("gnothi.opening"), io.StringIO()
    with terminal.Waiting("opening ..."):
        log.warning("[slow] here")
    with terminal.Waiting("opening ...", Console(file=out, force_terminal=True)):
        log.warning("[slow] here")
    assert capsys.readouterr().err == "warning: [slow] here\n"
    assert "warning: [slow] here\n" in out.getvalue()


@pytest.mark.parametrize(("said", "columns"), [("60", 60), ("120", 120), ("3", 20), ("", 80), ("wide", 80)])
def test_a_pipe_is_as_wide_as_columns_says(said: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", said)
    assert terminal.width() == columns
    lines = terminal.definitions([("k", "word " * 100), ("a" * 15, "word " * 100)])
    assert columns - 6 < max(map(len, lines)) <= columns
    assert terminal.console(to=io.StringIO()).width == (columns if said != "3" else 3)


@pytest.mark.parametrize(
    ("told", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)]
)
def test_a_pipe_is_coloured_where_that_is_asked_for_and_never_redrawn(
    told: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    screen = terminal.console(to=out)
    screen.print("x", style="green")
    assert ("\x1b[32m" in out.getvalue()) == coloured
    assert not screen.is_interactive
