"""PDFs written by hand, by matplotlib and by pypdf."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf.constants import PageLabelStyle

from gnothi.errors import MissingDependency
from gnothi.retrieval.ingest import bounded
from gnothi.retrieval.ingest.base import START, Step, Unreadable
from gnothi.retrieval.ingest.formats import FORMATS
from gnothi.retrieval.ingest.pdf import _joined, _pages
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import make_pdf

LEFT = [
    "The lighthouse of Orvel was built in the year",
    "1820 by the engineer Tomas Brandt, who was in-",
    "augurated as a member of the harbour board on",
    "the day after. Its first keeper was Dana Brisk.",
]
RIGHT = [
    "Salted plums keep for a whole year if the jar is",
    "closed. The recipe is from Marta Lindqvist, who",
    "used sea salt and bay leaves. She was a well-",
    "known cook; her well-known book was printed.",
]


def steps(path: Path, words: int = 100) -> list[Step]:
    return list(FORMATS[".pdf"](path, path.name, words, START))


def passages(path: Path, words: int = 100) -> list[Passage]:
    return [passage for step in steps(path, words) for passage in step.passages]


def text(path: Path) -> str:
    return " ".join(passage.text for passage in passages(path, 0))


def notices(path: Path) -> list[str]:
    return [step.notice for step in steps(path) if step.notice]


Item = tuple[float, float, str]


def drawn(path: Path, pages: Sequence[Sequence[Item]], picture: Callable[[int], bool] = lambda _: False) -> Path:
    """A PDF by matplotlib: text at (x, y) in points, drawn in this order; grey pictures that fill a page."""
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    with PdfPages(path) as file:
        for number, items in enumerate(pages):
            figure = Figure(figsize=(8.5, 11))
            if picture(number):
                axes = figure.add_axes((0, 0, 1, 1))
                axes.set_axis_off()
                axes.imshow([[0.5, 1.0]], aspect="auto")
            for x, y, text in items:
                figure.text(x / 612, y / 792, text, fontsize=9)
            file.savefig(figure)
    return path


def lines_of(x: float, texts: Sequence[str], y: float = 700) -> list[Item]:
    return [(x, y - 13 * number, line) for number, line in enumerate(texts)]


def in_turns(*columns: list[Item]) -> list[Item]:
    return [item for row in zip(*columns, strict=True) for item in row]


COLUMNS = (
    "The lighthouse of Orvel was built in the year 1820 by the engineer Tomas Brandt, who was inaugurated as a member of the "
    "harbour board on the day after. Its first keeper was Dana Brisk. Salted plums keep for a whole year if the jar is closed. "
    "The recipe is from Marta Lindqvist, who used sea salt and bay leaves. She was a well-known cook; her well-known book was "
    "printed."
)


def test_pages_in_order_with_title_and_mended_hyphens(tmp_path: Path) -> None:
    pages = [["The lighthouse was in-", "augurated (in 1820)."], ["Its keeper left."]]
    make_pdf(tmp_path / "a.pdf", pages, title="Of lighthouses")
    (found,) = passages(tmp_path / "a.pdf")
    assert (found.title, found.text) == ("Of lighthouses", "The lighthouse was inaugurated (in 1820). Its keeper left.")
    assert found.metadata == {"page": 1, "last_page": 2}
    for title in ("", "untitled", "Microsoft Word - Document1"):  # reportlab's, and a printer's
        make_pdf(tmp_path / "b.pdf", [["Words."]], title=title)
        assert passages(tmp_path / "b.pdf")[0].title == "b"


def test_columns_drawn_in_turns_are_read_one_after_the_other(tmp_path: Path) -> None:
    title = [(60.0, 740.0, "A long heading of the whole page that goes across both of its columns and has an end")]
    foot = [(60.0, 560.0, "Below both columns stands a line, or a caption, which crosses the strip between the two")]
    columns = lines_of(60, LEFT), lines_of(320, RIGHT)
    for order in (in_turns(*columns), in_turns(*columns[::-1]), [*columns[0], *columns[1]]):
        found = text(drawn(tmp_path / "a.pdf", [[*title, *order, *foot]]))
        assert found == f"{title[0][2]} {COLUMNS} {foot[0][2]}"


def test_three_columns_drawn_in_turns(tmp_path: Path) -> None:
    third = [
        "Herons nest beside the old",
        "harbour wall in spring and",
        "leave it when the boats of",
        "the fishermen come home.",
    ]
    first = [
        "The winter was so cold that",
        "the harbour froze from wall",
        "to wall and nobody could",
        "leave it before the spring.",
    ]
    second = [
        "Every house has a stove of",
        "tiles from Orvel, and each",
        "of them is heated with peat",
        "that is cut on the moor.",
    ]
    columns = lines_of(40, first), lines_of(230, second), lines_of(420, third)
    assert text(drawn(tmp_path / "a.pdf", [in_turns(*columns)])) == " ".join([*first, *second, *third])


def test_columns_from_right_to_left() -> None:
    from gnothi.retrieval.ingest.pdf import Segment, in_order

    def line(x: float, row: int, text: str) -> Segment:
        return Segment(text, x, 700 - 13 * row, x + 240, 710 - 13 * row)

    rows = [(line(60, row, "שמאל של העמוד"), line(320, row, "ימין של העמוד")) for row in range(4)]
    found = in_order([segment for row in rows for segment in row])
    assert [segment.left for segment in found] == [320] * 4 + [60] * 4


def test_rows_of_a_table_stay_rows(tmp_path: Path) -> None:
    rows = [
        ("Fish", "Price", "Harbour"),
        ("Cod", "3", "Orvel"),
        ("Herring", "5", "Plumsund"),
        ("Eel", "12", "Orvel"),
        ("Pike", "7", "Tarn"),
    ]
    cells = [
        (x, 700.0 - 13 * row, cell) for row, cells in enumerate(rows) for x, cell in zip((60, 250, 400), cells, strict=True)
    ]
    path = drawn(tmp_path / "a.pdf", [cells])
    assert text(path) == " ".join(" ".join(row) for row in rows)


def test_ligatures_are_letters(tmp_path: Path) -> None:
    assert (
        text(drawn(tmp_path / "a.pdf", [[(60, 700, "The \ufb01rst \ufb02ow is e\ufb03cient.")]]))
        == "The first flow is efficient."
    )


def test_a_passage_has_the_pages_of_its_first_and_last_word(tmp_path: Path) -> None:
    sentence = "Exactly ten words are in the sentence of number {}."
    pages = [[sentence.format(10 * page + line) for line in range(5)] for page in range(1, 7)]
    found = passages(make_pdf(tmp_path / "a.pdf", pages), words=30)
    assert [passage.metadata["page"] for passage in found] == [int(passage.text.split()[9][:-1]) // 10 for passage in found]
    ends = [passage.metadata.get("last_page", passage.metadata["page"]) for passage in found]
    assert ends == [int(passage.text.split()[-1][:-1]) // 10 for passage in found]
    assert len(found) == 10


def test_printed_labels_of_pages_are_kept_where_they_differ(tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(make_pdf(tmp_path / "plain.pdf", [[f"Words of leaf {name}."] for name in "ABCD"]))
    writer.set_page_label(0, 1, style=PageLabelStyle.LOWERCASE_ROMAN)
    writer.set_page_label(2, 3, style=PageLabelStyle.DECIMAL, start=3)
    writer.write(tmp_path / "a.pdf")
    assert [p.metadata for p in passages(tmp_path / "a.pdf", 4)] == [
        {"page": 1, "page_label": "i"},
        {"page": 2, "page_label": "ii"},
        {"page": 3},
        {"page": 4},
    ]


def test_a_word_that_two_pages_share_is_put_together(tmp_path: Path) -> None:
    assert text(make_pdf(tmp_path / "a.pdf", [["The keeper of the light-"], ["house is Dana Brisk."]])) == (
        "The keeper of the lighthouse is Dana Brisk."
    )


def test_running_heads_and_page_numbers_are_left_out_and_nothing_else(tmp_path: Path) -> None:
    numbers = range(3, 9)
    pages = [["Orvel, a handbook", f"Line {n} of the text", f"goes on {n * n}", f"- {n} -"] for n in numbers]
    found = text(make_pdf(tmp_path / "a.pdf", pages))
    assert found == "Orvel, a handbook " + " ".join(f"Line {n} of the text goes on {n * n}" for n in numbers)
    bills = [["Bill", f"No {n}", f"Total {n + 7}"] for n in numbers]
    assert text(make_pdf(tmp_path / "b.pdf", bills)) == "Bill " + " ".join(f"No {n} Total {n + 7}" for n in numbers)
    assert text(make_pdf(tmp_path / "c.pdf", [["Words."]] * 3)) == "Words. Words. Words."


def test_scanned_pages_are_named_and_the_others_read(tmp_path: Path) -> None:
    words = [(60.0, 700.0, "The keeper of the lighthouse of Orvel was Dana Brisk, and nobody else in the village.")]
    scanned = (2, 3, 5)
    pages: list[list[Item]] = [[] if number in scanned else words for number in range(6)]
    pages[3] = [(60, 20, "Scanned by a telephone")]
    path = drawn(tmp_path / "a.pdf", [*pages, []], picture=lambda number: number in scanned)
    (notice,) = notices(path)
    assert "pages 3-4, 6" in notice
    assert "OCRmyPDF" in notice
    assert "telephone" in text(path)
    assert text(path).count("keeper") == 3


def test_a_pdf_of_pictures_alone_says_so(tmp_path: Path) -> None:
    found = notices(drawn(tmp_path / "a.pdf", [[]], picture=lambda _: True))
    assert "pictures of text on page 1" in found[0]
    assert found[1:] == ["holds no text"]
    assert notices(make_pdf(tmp_path / "b.pdf", [[]])) == ["holds no text"]


@pytest.mark.parametrize("data", [b"", b"not a PDF at all", b"%PDF-1.4\n" + b"\0garbage" * 100])
def test_what_is_no_pdf_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(data)
    with refused(Unreadable, varies=r"(?<=read: ).*(?=\. Repair)"):
        steps(tmp_path / "a.pdf")


@pytest.mark.parametrize("end", [0.3, 0.8])
def test_a_pdf_that_was_cut_off_is_refused_or_read(tmp_path: Path, end: float) -> None:
    data = make_pdf(tmp_path / "a.pdf", [["Words."]] * 5).read_bytes()
    (tmp_path / "a.pdf").write_bytes(data[: int(len(data) * end)])
    with contextlib.suppress(Unreadable):
        assert set(text(tmp_path / "a.pdf").split()) <= {"Words."}


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_a_password_to_open_is_refused_and_one_to_change_is_not(tmp_path: Path, algorithm: str) -> None:
    make_pdf(tmp_path / "plain.pdf", [["Secret."]])
    for user, name in (("word", "a.pdf"), ("", "b.pdf")):
        writer = pypdf.PdfWriter(tmp_path / "plain.pdf")
        writer.encrypt(user, "owner", algorithm=algorithm)
        writer.write(tmp_path / name)
    with refused(Unreadable):
        steps(tmp_path / "a.pdf")
    assert text(tmp_path / "b.pdf") == "Secret."


def test_more_pages_than_a_file_can_hold_are_refused(tmp_path: Path) -> None:
    data = make_pdf(tmp_path / "plain.pdf", [["Words of a page."]]).read_bytes()
    count = 2_000
    kids, more = b"/Kids [4 0 R] /Count 1", b"/Kids [" + b"4 0 R " * count + b"] /Count %d" % count
    assert kids in data
    (tmp_path / "a.pdf").write_bytes(data.replace(kids, more))
    with refused(Unreadable):
        steps(tmp_path / "a.pdf")


def test_a_stream_that_unpacks_to_gigabytes_is_refused_and_the_next_file_is_read(tmp_path: Path) -> None:
    import zlib

    packer = zlib.compressobj(9, wbits=-15)
    bomb = b"\x78\xda" + 600 * (
        packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    )  # a stream's head, and blocks
    writer = pypdf.PdfWriter(make_pdf(tmp_path / "plain.pdf", [["Words."]]))
    stream = pypdf.generic.EncodedStreamObject()
    stream._data = bomb
    stream[pypdf.generic.NameObject("/Filter")] = pypdf.generic.NameObject("/FlateDecode")
    writer.pages[0][pypdf.generic.NameObject("/Contents")] = writer._add_object(stream)
    writer.write(tmp_path / "a.pdf")
    with refused(Unreadable, varies=r"(?<=512 MB).*(?=\. Leave)"):
        steps(tmp_path / "a.pdf")
    assert text(tmp_path / "plain.pdf") == "Words."


def test_without_pypdfium2_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_pdf(tmp_path / "a.pdf", [["Words."]])
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with refused(MissingDependency):
        steps(tmp_path / "a.pdf")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("light\ufffehouse", "lighthouse"),
        ("light-\nhouse", "lighthouse"),
        ("light\u2010\nhouse", "lighthouse"),
        ("well-known", "well-known"),
        ("Jean-\nPaul", "Jean-Paul"),
        ("2019\ufffe20", "2019-20"),
        ("маяк-\nом", "маяком"),
        ("a - b", "a - b"),
    ],
)
def test_hyphens_at_line_ends(given: str, expected: str) -> None:
    assert _joined(given, set()) == expected


def test_a_compound_that_the_document_knows_keeps_its_hyphen() -> None:
    assert _joined("Well\ufffeknown", {"well-known"}) == "Well-known"


@given(st.sets(st.integers(1, 60), min_size=1))
def test_pages_are_named_in_runs(numbers: set[int]) -> None:
    shown = _pages(sorted(numbers)).split(maxsplit=1)[1].removesuffix(" ...").split(", ")
    ends = [tuple(map(int, run.split("-"))) for run in shown]
    named = [number for run in ends for number in range(run[0], run[-1] + 1)]
    assert named == sorted(numbers)[: len(named)]
    assert len(named) == len(numbers) or len(shown) == 20


def test_the_worker_is_used_again(tmp_path: Path) -> None:
    make_pdf(tmp_path / "a.pdf", [["Words."]])
    steps(tmp_path / "a.pdf")
    (worker,) = bounded._idle
    steps(tmp_path / "a.pdf")
    assert bounded._idle == [worker]
