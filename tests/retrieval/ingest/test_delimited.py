from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.ingest.base import START, Step
from gnothi.retrieval.ingest.delimited import read
from gnothi.types import Passage


def steps(path: Path, text: str) -> list[Step]:
    path.write_text(text, encoding="utf-8")
    return list(read(path, "key", 100, START))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "psgs.tsv"


def test_rows_as_dpr_writes_them(file: Path) -> None:
    rows = 'id\ttext\ttitle\n1\t"He said ""go"" and left."\tThe Title\n2\tplain\t"Quoted ""T"""\n'
    assert [step.passages[0] for step in steps(file, rows)] == [
        Passage("1", 'He said "go" and left.', "The Title"),
        Passage("2", "plain", 'Quoted "T"'),
    ]


def test_a_packed_file_is_read_and_gone_on_with(tmp_path: Path) -> None:
    rows = "id\ttext\ttitle\n" + "".join(f'{n}\t"Passage ""{n}"" of DPR."\tTitle {n}\n' for n in range(1, 6))
    packed = tmp_path / "psgs_w100.tsv.gz"
    packed.write_bytes(gzip.compress(rows.encode()))
    found = list(read(packed, "key", 100, START))
    assert [step.passages for step in found] == [
        (Passage(str(n), f'Passage "{n}" of DPR.', f"Title {n}"),) for n in range(1, 6)
    ]
    assert found[1].checkpoint is not None
    assert [step.passages for step in read(packed, "key", 100, found[1].checkpoint)] == [step.passages for step in found[2:]]
    report = build([packed], tmp_path / "index")
    assert (report.passages, BM25Index.open(tmp_path / "index").search_blocking("passage 4", 1)[0].passage.id) == (5, "4")


def test_columns_in_any_order_and_without_titles(file: Path) -> None:
    assert steps(file, "\ufefftitle\tID\ttext\nT\t5\tx\n")[0].passages == (Passage("5", "x", "T"),)
    assert steps(file, "text\tid\nx\t5\n")[0].passages == (Passage("5", "x"),)


def test_a_stray_quote_is_text(file: Path) -> None:
    assert steps(file, 'id\ttext\ttitle\n1\t"Open only\tT\n')[0].passages == (Passage("1", '"Open only', "T"),)


@pytest.mark.parametrize(
    ("row", "says"), [("1\tx", "got 2 fields, expected 3"), ("a\tb\tc\td", "got 4"), (" \tx\tT", "its id has 0")]
)
def test_invalid_rows_are_named_and_the_next_is_read(file: Path, row: str, says: str) -> None:
    bad, good = steps(file, f"id\ttext\ttitle\n{row}\n2\tx\tT\n")
    assert says in bad.invalid
    assert bad.checkpoint is not None
    assert bad.checkpoint.line == 2
    assert good.passages == (Passage("2", "x", "T"),)


def passages(path: Path, content: str | bytes) -> list[Passage]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [passage for step in read(path, "key", 100, START) for passage in step.passages]


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_a_row_holds_no_text(file: Path, text: str) -> None:
    assert [step.notice for step in steps(file, text)] == ["holds no text"]


def test_quoted_line_breaks(file: Path) -> None:
    found = steps(file, 'id\ttext\ttitle\n1\t"One\n\ntwo"\tT\n2\t"Open only\tT\n3\tx\tT\n')
    assert [step.passages[0].text for step in found] == ["One\n\ntwo", '"Open only', "x"]
    assert found[0].checkpoint is not None
    assert list(read(file, "key", 100, found[0].checkpoint)) == found[1:]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_tables_as_spreadsheets_write_them(tmp_path: Path, encoding: str, separator: str) -> None:
    rows = [["Station", "Height", "Keeper"], ["Örvel", '"3,5 m; high\ttide|"', "Dána"], ["Tarn", "", "Otto"]]
    data = "\r\n".join(map(separator.join, rows)).encode(encoding)
    assert [(p.title, p.text) for p in passages(tmp_path / "a.csv", data)] == [
        ("a", "Station: Örvel; Height: 3,5 m; high tide|; Keeper: Dána"),
        ("a", "Station: Tarn; Keeper: Otto"),
    ]


def test_a_collection_in_utf_16(file: Path) -> None:
    assert passages(file, "id;text\n1;x y\n".encode("utf-16")) == [Passage("1", "x y")]


def test_rows_without_heads_are_values(file: Path) -> None:
    assert [p.text for p in passages(file, "1\tOrvel\t31\n2\tTarn\t22\n")] == ["1; Orvel; 31", "2; Tarn; 22"]


def test_heads_that_are_guessed_are_told(file: Path) -> None:
    notices = [step.notice for step in steps(file, "name\trole\nDana\tkeeper\nOtto\tcook\n") if step.notice]
    assert notices == ["is read with its first row as the names of columns: name, role"]
    assert not [step.notice for step in steps(file, "name\tage\nDana\t31\nOtto\t40\n") if step.notice]
    notices = [step.notice for step in steps(file, "name\tname\trole\nDana\tBrisk\tkeeper\nOtto\tLind\tcook\n") if step.notice]
    assert notices == ["is read without names of columns, since its first row has 'name' twice"]


@pytest.mark.parametrize(
    ("table", "texts"),
    [
        ("name,age\rDana,31\rOtto,40\r", ["name: Dana; age: 31", "name: Otto; age: 40"]),
        ("name,age\nDa\rna,31\n", ["name: Da na; age: 31"]),
        ("sep=;\r\nid;text\r\n1;One, two\r\n", ["One, two"]),
        ("id,text\n1,One,\n2,Two,,\n", ["One", "Two"]),
        ("name,mark,mark\nDana,5,6\n", ["name: Dana; mark: 5; mark: 6"]),
        ('Port,Ships\nSalen,12\n\nCrew,Count\n"a\n\ncook",3\n', ["Port: Salen; Ships: 12", "Crew: a cook; Count: 3"]),
        (
            'Port,Ships\nSalen,12\nCrew,"a\n\nb"\nCook,3\n',
            ["Port: Salen; Ships: 12", "Port: Crew; Ships: a b", "Port: Cook; Ships: 3"],
        ),
    ],
)
def test_odd_tables_of_spreadsheets(tmp_path: Path, table: str, texts: list[str]) -> None:
    assert [one.text for one in passages(tmp_path / "a.csv", table)] == texts


def test_a_packed_table_of_odd_line_ends_is_read(tmp_path: Path) -> None:
    assert passages(tmp_path / "a.csv.gz", gzip.compress(b"name,age\rDana,31\r"))


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=30)


@settings(max_examples=settings().max_examples // 3)
@given(rows=st.lists(st.tuples(CELLS, CELLS), max_size=8))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    file = tmp_path_factory.mktemp("tsv") / "psgs.tsv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter="\t")
        writer.writerow(["id", "text", "title"])
        writer.writerows([(str(i), *row) for i, row in enumerate(rows)])
    found = list(read(file, "key", 0, START))
    expected = [
        (Passage(str(i), text, title),) if text.strip() or title.strip() else () for i, (text, title) in enumerate(rows)
    ]
    assert [step.passages for step in found] == expected
    for i, step in enumerate(found):
        assert step.checkpoint is not None
        assert list(read(file, "key", 0, step.checkpoint)) == found[i + 1 :]
