from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.ingest.base import START, Step, Unreadable
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
    ("row", "says"), [("1\tx", "got 2 tab-separated fields, expected 3"), ("a\tb\tc\td", "got 4"), (" \tx\tT", "its id has 0")]
)
def test_invalid_rows_are_named_and_the_next_is_read(file: Path, row: str, says: str) -> None:
    bad, good = steps(file, f"id\ttext\ttitle\n{row}\n2\tx\tT\n")
    assert says in bad.invalid
    assert bad.checkpoint is not None
    assert bad.checkpoint.line == 2
    assert good.passages == (Passage("2", "x", "T"),)


@pytest.mark.parametrize("text", ["", "1\tsome text\ta title\n", "\n\nid\ttext\n"])
def test_a_file_without_the_header_is_refused(file: Path, text: str) -> None:
    with pytest.raises(Unreadable, match=r"line 1: got .* expected a header"):
        steps(file, text)


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=30)


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
