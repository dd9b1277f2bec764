"""Tables for notebooks, read back by Python's own parser."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as some

from gnothi.notebook import listing, table

TEXT = some.text(some.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


class Cells(HTMLParser):
    """Rows of cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert self.open[-1] in ("td", "th", "small")
        self.rows[-1][-1] += data


@given(some.lists(some.lists(TEXT, min_size=1)), some.lists(TEXT))
def test_cells_hold_the_text_that_was_given(rows: list[list[str]], headings: list[str]) -> None:
    found = Cells(table(rows, headings))
    assert not found.open
    assert found.rows == [headings] * bool(headings) + rows


def test_what_is_not_there_is_left_out_of_a_listing() -> None:
    told = {"a": 0.123456, "b": None, "c": "", "d": [], "e": ["x", "<y>"], "f": 0, "g": False}
    assert Cells(listing(told)).rows == [["a", "0.1235"], ["e", "x<y>"], ["f", "0"], ["g", "False"]]
    assert Cells(table([[None]])).rows == [["-"]]
