"""Tables of Markdown and HTML, hidden text, raised letters: what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.retrieval.ingest.outline import raised
from gnothi.retrieval.ingest.tables import Cell, Table
from tests.retrieval.ingest.test_documents import titled


def rows(cells: list[list[str]], **settings: bool) -> list[str]:
    table = Table(**settings)  # type: ignore[arg-type]
    return [one.text for row in cells for one in table.add([Cell(cell) for cell in row])] + [one.text for one in table.end()]


def html(tmp_path: Path, markup: str) -> list[tuple[str, str]]:
    return titled(tmp_path / "a.html", markup)


HEAD = "<tr><th>Station<th>Height<th>Keeper</tr>"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (HEAD + "<tr><td>Orvel<td>31<td>Dana", ["Station: Orvel; Height: 31; Keeper: Dana"]),
        ("<thead><tr><td>A<td>B</thead><tr><td>x<td>y", ["A: x; B: y"]),
        ("<tr><th rowspan=2>A<th colspan=2>B</tr><tr><th>c<th>d</tr><tr><td>1<td>2<td>3", ["A: 1; B c: 2; B d: 3"]),
        (HEAD + "<tr><td rowspan=2>Orvel<td>1<td>x</tr><tr><td>2<td>y",
         ["Station: Orvel; Height: 1; Keeper: x", "Station: Orvel; Height: 2; Keeper: y"]),
        (HEAD + "<tr><td>Orvel<td colspan=2>closed", ["Station: Orvel; Height / Keeper: closed"]),
        ("<tr><th><th>Height</tr><tr><th>Orvel<td>31</tr>", ["Orvel; Height: 31"]),
        ("<tr><th>Born<td>1820</tr><tr><th>Died:<td>1890", ["Born: 1820 Died: 1890"]),
        ("<tr><td>Year<td>Lamps</tr><tr><td>Low<td>3</tr><tr><td>High<td>4", ["Year: Low; Lamps: 3", "Year: High; Lamps: 4"]),
        ("<tr><td>Only one cell", ["Only one cell"]),
        ("<tr><td>Left<td>Right", ["Left Right"]),
        ("<tr><td><h2>News</h2>It shines.<td>Aside", ["It shines. Aside"]),
        ("<tr><td>Menu<td><table>" + HEAD + "<tr><td>Orvel<td>31<td>Dana</table>",
         ["Menu", "Station: Orvel; Height: 31; Keeper: Dana"]),
        (HEAD + "<tr><td>Orvel<td><table><tr><td>3<td>4</table><td>Dana", ["Station: Orvel; Height: 3 4; Keeper: Dana"]),
        (HEAD, ["Station; Height; Keeper"]),
        (HEAD + "<tr><td>10<sup>6</sup><td>a<br>b<td><b>Da</b>na", ["Station: 10^6; Height: a b; Keeper: Dana"]),
        (HEAD + "<tr hidden><td>Orvel</tr><tr><td>Tarn<td style='display: none'>9<td>", ["Station: Tarn"]),
    ],
)  # fmt: skip
def test_tables_of_html(tmp_path: Path, markup: str, expected: list[str]) -> None:
    assert [text for _, text in html(tmp_path, f"<table>{markup}</table>")] == expected


def test_groups_and_captions_are_titles(tmp_path: Path) -> None:
    markup = f"<h1>H</h1><table><caption>Lights</caption>{HEAD}<tr><td colspan=3>North</tr><tr><td>Orvel<td>1<td>x</table>"
    assert html(tmp_path, markup) == [("H > Lights > North", "Station: Orvel; Height: 1; Keeper: x")]


@pytest.mark.parametrize(
    "hidden",
    ["<p hidden>x</p>", "<p aria-hidden=true>x</p>", "<div style='color:red;DISPLAY:none'><p>x</p>y</div>", "<!-- x -->",
     "<template><p>x</template>", "<noscript>x</noscript>", "<span style='visibility: hidden'>x</span>", "<br hidden>",
     "<input type=hidden value=x>"],
)  # fmt: skip
def test_hidden_text_of_html_stays_out(tmp_path: Path, hidden: str) -> None:
    assert html(tmp_path, f"<p>Seen.</p>{hidden}<p>Too.</p>") == [("a", "Seen. Too.")]
    assert titled(tmp_path / "a.md", f"Seen.\n\n{hidden}\n\nToo.") == [("a", "Seen. Too.")]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("| a | b |\n|--|:-:|\n| `x|y` | z |\n", ["a: x|y; b: z"]),
        ("| a | b |\n|--|--|\n| x\\|y | `z\\|w` |\n", ["a: x|y; b: z|w"]),
        ("a | b\n--|--\n10<sup>6</sup> | *z*\n| | w\n", ["a: 10^6; b: z", "b: w"]),
        ("| | b |\n|--|--|\n| x | y |\n", ["x; b: y"]),
    ],
)
def test_tables_of_markdown(tmp_path: Path, markdown: str, expected: list[str]) -> None:
    assert [text for _, text in titled(tmp_path / "a.md", markdown)] == expected


LONG = "x" * 60


def test_a_table_of_markdown_that_is_cut_keeps_its_heads(tmp_path: Path) -> None:
    body = "".join(f"| Station{i}{LONG} | {i} m |\n" for i in range(4_000))
    assert len(body) > 1 << 18
    found = titled(tmp_path / "a.md", "| Station | Height |\n|---|---|\n" + body)
    assert [text for _, text in found] == [f"Station: Station{i}{LONG}; Height: {i} m" for i in range(4_000)]


@pytest.mark.parametrize(
    ("before", "text", "link", "expected"),
    [("10", "6", False, "^6"), ("19", "th", False, "th"), ("m", "2", False, "^2"), ("10", "-3", False, "^-3"),
     ("word", "1", True, "[1]"), ("e", "x", False, "^x"), ("2", "e", False, "e"), (". ", "3", False, "3"),
     ("", "6", False, "6")],
)  # fmt: skip
def test_raised_letters(before: str, text: str, link: bool, expected: str) -> None:
    assert raised(before, text, link) == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([["Product", "2019", "2020"], ["Lamp", "3", "4"], ["Oil", "5", "6"]],
         ["Product: Lamp; 2019: 3; 2020: 4", "Product: Oil; 2019: 5; 2020: 6"]),
        ([["Orvel", "31"], ["Tarn", "22"]], ["Orvel; 31", "Tarn; 22"]),
        ([["2019", "2020"], ["2018", "2021"]], ["2019; 2020", "2018; 2021"]),
        ([["Name", "Age"], ["Dana", "31"], ["Name", "Age"], ["Otto", "40"]], ["Name: Dana; Age: 31", "Name: Otto; Age: 40"]),
        ([["Name"], ["Dana"], ["Otto"]], ["Name: Dana", "Name: Otto"]),
        ([["Port", "Ships", "Tons"], ["Salen", "12", "3400"], ["", ""], ["Crew", "Count"], ["Cook", "3"], [], ["Mate", "4"]],
         ["Port: Salen; Ships: 12; Tons: 3400", "Crew: Cook; Count: 3", "Crew: Mate; Count: 4"]),
        ([["City", "Pop"], ["Paris", "3"], [], ["Oslo", "unknown"], ["Bergen", "40"], ["Voss", "7"]],
         ["City: Paris; Pop: 3", "City: Oslo; Pop: unknown", "City: Bergen; Pop: 40", "City: Voss; Pop: 7"]),
        ([["City", "Land", "Pop"], ["Paris", "France", "3"], [], ["Oslo", "Norway", "shut"], ["Malmo", "Sweden", "40"]],
         ["City: Paris; Land: France; Pop: 3", "City: Oslo; Land: Norway; Pop: shut", "City: Malmo; Land: Sweden; Pop: 40"]),
        ([["Port", "Ships"], *[["Salen", "12"]] * 99, [], ["Of crews"], ["Crew", "Count"], ["Cook", "3"]],
         [*["Port: Salen; Ships: 12"] * 99, "Crew: Cook; Count: 3"]),
        ([["Port", "Ships"], ["Salen", "12"], [], ["Orvel", "3"], [], [], ["Tarn", "4"], ["Low", "n/a"]],
         ["Port: Salen; Ships: 12", "Port: Orvel; Ships: 3", "Port: Tarn; Ships: 4", "Port: Low; Ships: n/a"]),
        ([["Name", "Town"], ["Dana", "Orvel"], [], ["Otto", "Tarn"], ["Ada", "Low"]],
         ["Name: Dana; Town: Orvel", "Name: Otto; Town: Tarn", "Name: Ada; Town: Low"]),
        ([["All ports"], [], ["Port", "Ships"], [], ["Salen", "12"], ["Orvel", "3"]],
         ["Port: Salen; Ships: 12", "Port: Orvel; Ships: 3"]),
    ],
)  # fmt: skip
def test_heads_of_spreadsheets(cells: list[list[str]], expected: list[str]) -> None:
    assert rows(cells, spreadsheet=True) == expected


@given(cells=st.lists(st.lists(st.text(max_size=8), max_size=5), max_size=60))
def test_no_row_loses_a_value(cells: list[list[str]]) -> None:
    table = Table(spreadsheet=True)
    everything = ""
    for row in [*cells, None]:
        for one in table.end() if row is None else table.add([Cell(cell) for cell in row]):
            everything += f" {one.text} {table.caption} {' '.join(table.heads)}"
    assert all(" ".join(cell.split()) in everything for row in cells for cell in row if cell.rstrip(": "))
