"""Tables fit the console, and a row always says what it is about."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from gnothi.report.table_form import Column, Row, Table, Value
from gnothi.report.terminal.console import paragraph

HEADINGS = ("method", "n", "EM", "calls", "tokens", "empty")
ROWS = [
    Row(("seakr", "500", Value(".876", note=".85-.90"), "16.2", "12.3k", "-")),
    Row(("Parts",), "italic"),
    Row(("seakr without its passage re-ranking", "500", ".812", "9.80", "8.1k", None)),
]


def shown(width: int, rows: list[Row] = ROWS) -> list[str]:
    out = io.StringIO()
    Table([*map(Column, HEADINGS)], rows, spare=("tokens", "calls")).show(Console(file=out, width=width))
    return out.getvalue().splitlines()


def test_where_there_is_room() -> None:
    assert shown(80) == [
        "method                                 n      EM calls tokens",
        "seakr                                500    .876  16.2  12.3k",
        "                                         .85-.90",
        "Parts",
        "seakr without its passage re-ranking 500    .812  9.80   8.1k",
    ]


def test_names_do_not_steer_the_terminal() -> None:
    out = io.StringIO()
    paragraph(Console(file=out, width=24, markup=False), "diff.: less that of \x00; \x1b[2Jgate\u202e")
    assert (
        out.getvalue()
        == "diff.: less that of \N{REPLACEMENT CHARACTER};\n  \N{REPLACEMENT CHARACTER}[2Jgate\N{REPLACEMENT CHARACTER}\n"
    )
    (_, line) = shown(80, [Row(("a\x1b[2J", "1", "", "", "", ""))])
    assert "\x1b" not in line


def test_columns_give_way_to_names() -> None:
    assert shown(35) == [
        "method             n      EM calls",
        "seakr            500    .876  16.2",
        "                     .85-.90",
        "Parts",
        "seakr without    500    .812  9.80",
        "its passage",
        "re-ranking",
        "no room here for tokens: use a",
        "  wider terminal or --json",
    ]
    assert shown(30)[0] == "method              n      EM"


@pytest.mark.parametrize("width", [30, 40, 60, 80])
@given(name=st.text("abcdefghij 漢字", min_size=1, max_size=60).filter(str.strip))
def test_no_line_is_too_wide_and_no_name_is_cut(width: int, name: str) -> None:
    lines = shown(width, [Row((name, "1", ".5", "2", "3", ""))])
    assert max(map(cell_len, lines)) <= width
    table = [line for line in lines[1:] if not line.startswith(("no room", "  wider"))]
    assert "".join(letter for line in table for letter in line if letter.isalpha()) == "".join(name.split())


def test_no_rows() -> None:
    assert shown(80, []) == ["method"]
