"""Documents of office programs, books, mails, notebooks and code: what is read of them, and where it stands."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from gnothi.retrieval.ingest.base import START
from gnothi.retrieval.ingest.formats import reader
from gnothi.types import Passage
from tests.retrieval.ingest.office_files import (
    A,
    a_shape,
    make_docx,
    make_epub,
    make_odf,
    make_pptx,
    make_xlsx,
    make_zip,
    relations,
    w_p,
    w_table,
    x_rows,
)  # fmt: skip

ROWS = [["Station", "Height", "Keeper"], ["Orvel", "31 m", "Dana Brisk"], ["Tarn", "", "Otto Lind"]]
AS_ROWS = ["Station: Orvel; Height: 31 m; Keeper: Dana Brisk", "Station: Tarn; Keeper: Otto Lind"]


def passages(path: Path, words: int = 100) -> list[Passage]:
    return [passage for step in reader(path)(path, path.name, words, START) for passage in step.passages]


@pytest.mark.parametrize("title", ["Document1", "PowerPoint Presentation", "Untitled 1", "UNTITLED document", "Slide 2"])
def test_a_title_that_a_program_gave_is_none(title: str, tmp_path: Path) -> None:
    page = f"<html><head><title>{title}</title></head><body><p>Dana kept it.</p></body></html>"
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "a.md").write_text(f"---\ntitle: {title}\n---\nDana kept it.")
    make_docx(tmp_path / "a.docx", w_p("Dana kept it."), title=title)
    make_epub(tmp_path / "a.epub", ["<html><body><p>Dana kept it.</p></body></html>"], title)
    for kind in ("html", "md", "docx", "epub"):
        assert titled_texts(tmp_path / f"a.{kind}") == [("a", "Dana kept it.")], kind


@pytest.mark.parametrize(
    "title", ["1984", "Page 4", "The untitled", "Document of trust", "Presentation 2025", "Untitled poems"]
)
def test_other_titles_are_kept(title: str, tmp_path: Path) -> None:
    assert titled_texts(make_docx(tmp_path / "a.docx", w_p("Dana kept it."), title=title)) == [(title, "Dana kept it.")]


def titled_texts(path: Path) -> list[tuple[str, str]]:
    return [(passage.title, passage.text) for passage in passages(path)]


def notices(path: Path) -> list[str]:
    return [step.notice for step in reader(path)(path, path.name, 100, START) if step.notice]


def metadata_of(path: Path, name: str) -> list[Any]:
    return [passage.metadata.get(name) for passage in passages(path)]


# DOCX


def test_docx_headings_of_any_language_tables_and_notes(tmp_path: Path) -> None:
    note = f'<w:footnote w:id="2">{w_p("By the harbour.")}</w:footnote>'
    body = (
        w_p("Contents ... 3", "Verzeichnis1")
        + w_p("Stations", "berschrift1")
        + w_p("Keepers", "Eigene")
        + w_p("The light is kept.", inner='<w:r><w:footnoteReference w:id="2"/></w:r>')
        + w_table(ROWS)
        + w_p("Later", "berschrift1")
        + w_p("It went out.")
    )
    path = make_docx(tmp_path / "a.docx", body, note, "The Handbook")
    below = "The Handbook > Stations > Keepers"
    assert titled_texts(path) == [
        (below, "The light is kept. By the harbour."),
        *((below, row) for row in AS_ROWS),
        ("The Handbook > Later", "It went out."),
    ]
    assert set(metadata_of(path, "author")) == {"Dana Brisk"}
    assert metadata_of(path, "date")[0] == "2025-03-04"
    assert metadata_of(path, "section") == ["Stations > Keepers"] * 3 + ["Later"]


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("<w:ins><w:r><w:t> new</w:t></w:r></w:ins><w:del><w:r><w:delText> old</w:delText></w:r></w:del>", "It is new"),
        ("<w:moveFrom><w:r><w:t> away</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t> here</w:t></w:r></w:moveTo>", "It is here"),
        ('<w:hyperlink><w:r><w:t> a link</w:t></w:r></w:hyperlink>', "It is a link"),
        ('<w:r><w:fldChar/></w:r><w:r><w:instrText>PAGE \\* MERGE</w:instrText></w:r><w:r><w:t> 7</w:t></w:r>', "It is 7"),
        ("<w:r><w:rPr><w:vanish/></w:rPr><w:t> hidden</w:t></w:r>", "It is"),
        ('<w:r><w:t> 10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>6</w:t></w:r>', "It is 10^6"),
        ('<w:r><w:t> H</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="subscript"/></w:rPr><w:t>2O</w:t></w:r>', "It is H2O"),
        ("<w:r><w:tab/><w:t>a</w:t><w:br/><w:t>b</w:t></w:r>", "It is a b"),
        ("<w:sdt><w:sdtContent><w:r><w:t> a field</w:t></w:r></w:sdtContent></w:sdt>", "It is a field"),
    ],
)  # fmt: skip
def test_docx_runs(tmp_path: Path, inner: str, text: str) -> None:
    assert titled_texts(make_docx(tmp_path / "a.docx", w_p("It is", inner=inner))) == [("a", text)]


def test_docx_text_boxes_are_read_once(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{w_p('In a box.')}</w:txbxContent>"
    drawing = (
        f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r>"
    )
    assert sorted(titled_texts(make_docx(tmp_path / "a.docx", w_p("Around it.", inner=drawing)))[0][1].split(". ")) == [
        "Around it.",
        "In a box",
    ]


def test_docx_merged_heads_and_cells(tmp_path: Path) -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{w_p(text)}</w:tc>"

    both, above, below = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = [
        [cell("Station"), cell("Height", both)],
        [cell(""), cell("low"), cell("high")],
        [cell("Orvel", above), cell("3"), cell("5")],
        [cell("", below), cell("4"), cell("6")],
    ]
    table = "".join(f"<w:tr>{''.join(row)}</w:tr>" for row in rows)
    assert [text for _, text in titled_texts(make_docx(tmp_path / "a.docx", f"<w:tbl>{table}</w:tbl>"))] == [
        "Station: Orvel; Height low: 3; Height high: 5",
        "Station: Orvel; Height low: 4; Height high: 6",
    ]


# PPTX


def test_pptx_slides_in_the_order_of_the_show(tmp_path: Path) -> None:
    cells = "".join(
        "<a:tr>"
        + "".join(f"<a:tc><a:txBody><a:p><a:r><a:t>{cell}</a:t></a:r></a:p></a:txBody></a:tc>" for cell in row)
        + "</a:tr>"
        for row in ROWS
    )
    table = f'<p:graphicFrame><a:tbl><a:tblPr firstRow="1"/>{cells}</a:tbl></p:graphicFrame>'
    slides = [
        a_shape("The keepers", "title") + a_shape("Dana kept it.") + a_shape("1", "sldNum"),
        a_shape("Figures", "title") + table,
        a_shape("The end", "ctrTitle"),
    ]
    path = make_pptx(tmp_path / "a.pptx", slides, "Say it slowly.")
    assert titled_texts(path) == [
        ("a > The keepers", "Dana kept it. Say it slowly."),
        *(("a > Figures", row) for row in AS_ROWS),
        ("a > The end", "The end"),
    ]
    assert metadata_of(path, "slide") == [1, 2, 2, 3]


# XLSX


DIAGRAM = (
    f"<dgm:dataModel xmlns:dgm='urn:dgm' {A}><a:p><a:r><a:t>Plan</a:t></a:r></a:p><a:p/><a:p><a:r><a:t>Do</a:t></a:r></a:p>"
)


@pytest.mark.parametrize(("kind", "of"), [("docx", "word/document.xml"), ("pptx", "ppt/slides/slide1.xml")])
def test_the_texts_of_diagrams(tmp_path: Path, kind: str, of: str) -> None:
    """Of SmartArt, in a part of its own."""
    path = tmp_path / f"a.{kind}"
    made = make_docx(path, w_p("Body")) if kind == "docx" else make_pptx(path, [a_shape("Body")])
    with ZipFile(made) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    folder, _, name = of.rpartition("/")
    parts[f"{folder}/_rels/{name}.rels"] = relations({"data1.xml": "diagramData"}).encode()
    parts[f"{folder}/data1.xml"] = f"{DIAGRAM}</dgm:dataModel>".encode()
    assert [one.text for one in passages(make_zip(path, parts))] == ["Body Plan Do"]


def test_xlsx_numbers_have_the_digits_that_spreadsheets_show(tmp_path: Path) -> None:
    path = make_xlsx(tmp_path / "a.xlsx", {"S": x_rows([["Name", "Mass"], ["Heron", 0.1 + 0.2], ["Swan", 12345678.9]])})
    assert [one.text for one in passages(path)] == ["Name: Heron; Mass: 0.3", "Name: Swan; Mass: 12345678.9"]


def test_a_sheet_whose_heads_are_guessed_or_refused_is_told(tmp_path: Path) -> None:
    rows: list[list[str | float]] = [["Keeper", "Role"], ["Dana", "cook"], ["Otto", "smith"]]
    sheets = {"S": x_rows(rows), "T": x_rows([["Keeper", "Keeper"], *rows[1:]])}
    assert notices(make_xlsx(tmp_path / "a.xlsx", sheets)) == [
        "has a sheet 'S' that is read with its first row as the names of columns",
        "has a sheet 'T' that is read without names of columns, since it has 'Keeper' twice",
    ]


def test_xlsx_sheets_rows_and_numbers(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    rows = x_rows([["Stations of the coast"], ["Station", "Height", "Built"], ["Orvel", 31.5, 1820], ["Tarn", 22.0, 1790]])
    path = make_xlsx(tmp_path / "a.xlsx", {"Coast": rows, "Empty": "", "Lakes": x_rows([["Lake", "Depth"], ["Low", 3]])})
    assert titled_texts(path) == [
        ("a > Coast > Stations of the coast", "Station: Orvel; Height: 31.5; Built: 1820"),
        ("a > Coast > Stations of the coast", "Station: Tarn; Height: 22; Built: 1790"),
        ("a > Lakes", "Lake: Low; Depth: 3"),
    ]
    assert metadata_of(path, "sheet") == ["Coast", "Coast", "Lakes"]


def test_xlsx_cells_over_several_rows_and_columns(tmp_path: Path) -> None:
    rows: list[list[str | float]] = [
        ["Port", "Visitors", "", "Keeper"], ["", "Adults", "Children", ""],
        ["Orvel", 11, 22, "Dana"], ["", 33, 44, ""], ["", "", "", ""], ["Tarn", 55, 66, "Otto"],
    ]  # fmt: skip
    path = make_xlsx(tmp_path / "a.xlsx", {"S": x_rows(rows)}, merged="A1:A2 B1:C1 D1:D2 A3:A5 D3:D4")
    assert [one.text for one in passages(path)] == [
        "Port: Orvel; Visitors Adults: 11; Visitors Children: 22; Keeper: Dana",
        "Port: Orvel; Visitors Adults: 33; Visitors Children: 44; Keeper: Dana",
        "Port: Tarn; Visitors Adults: 55; Visitors Children: 66; Keeper: Otto",
    ]


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_hidden_sheets_of_xlsx_are_told_and_left_out(tmp_path: Path, state: str) -> None:
    rows = x_rows([["Lake", "Depth"], ["Low", 3]])
    path = make_xlsx(tmp_path / "a.xlsx", {"Secret": rows, "Lakes": rows}, state)
    assert titled_texts(path) == [("a > Lakes", "Lake: Low; Depth: 3")]
    assert notices(path) == ["has a hidden sheet 'Secret', which is left out"]


# OpenDocument


HIDING = "".join(
    f'<style:style style:name="{name}" style:family="{family}">{properties}</style:style>'
    for name, family, properties in (
        ("T1", "text", '<style:text-properties text:display="none"/>'), ("x", "text", ""),
        ("P1", "paragraph", '<style:text-properties text:display="none"/>'),
        ("x", "table", '<style:table-properties table:display="false"/>'),
        ("y", "table", '<style:table-properties table:display="true"/>'),
        ("x", "drawing-page", '<style:drawing-page-properties presentation:visibility="hidden"/>'),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body", "texts", "told"),
    [
        ("text", '<text:p>Seen<text:span text:style-name="T1"> not</text:span><text:span text:style-name="x"> too</text:span>'
         '</text:p><text:p text:style-name="P1">Nor this</text:p>', ["Seen too"], []),
        ("text", "<text:p>One<text:span> two</text:span><office:annotation><text:p>Not</text:p></office:annotation> three"
         "</text:p>", ["One two three"], []),
        ("spreadsheet", "".join(f'<table:table table:name="{one}" table:style-name="{one}"><table:table-row><table:table-cell>'
         f"<text:p>in {one}</text:p></table:table-cell></table:table-row></table:table>" for one in "xy"), ["in y"],
         ["has a hidden sheet 'x', which is left out"]),
        ("presentation", "".join(f'<draw:page draw:style-name="{one}"><draw:frame><draw:text-box><text:p>on {one}</text:p>'
         "</draw:text-box></draw:frame></draw:page>" for one in "yxy"), ["on y", "on y"],
         ["has a hidden slide, 2, which is left out"]),
    ],
)  # fmt: skip
def test_what_opendocument_hides_is_left_out(tmp_path: Path, kind: str, body: str, texts: list[str], told: list[str]) -> None:
    path = make_odf(tmp_path / "a.od", body, kind, HIDING).rename(tmp_path / f"a.od{kind[0]}")
    assert [one.text for one in passages(path)] == texts
    assert notices(path) == told
    assert metadata_of(path, "slide") == ([1, 3] if kind == "presentation" else [None])


def test_odt_headings_notes_lists_and_raised_text(tmp_path: Path) -> None:
    raised = '<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style>'
    body = (
        "<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Stations</text:h><text:h text:outline-level="2">Keepers</text:h>'
        '<text:p>It shines 10<text:span text:style-name="T1">6</text:span> times'
        "<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>By count.</text:p></text:note-body></text:note>.</text:p>"
        "<text:list><text:list-item><text:p>salt</text:p></text:list-item></text:list>"
        "<table:table>"
        + "".join(
            "<table:table-row>"
            + "".join(f"<table:table-cell><text:p>{c}</text:p></table:table-cell>" for c in row)
            + "</table:table-row>"
            for row in ROWS
        )
        + "</table:table>"
    )
    path = make_odf(tmp_path / "a.odt", body, styles=raised)
    assert titled_texts(path) == [
        ("Stations > Keepers", "It shines 10^6 times. By count. salt"),
        *(("Stations > Keepers", row) for row in AS_ROWS),
    ]
    assert metadata_of(path, "date")[0] == "2025-03-04"


def test_ods_and_odp(tmp_path: Path) -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rows = "".join(
        f"<table:table-row>{''.join(map(cell, row))}<table:table-cell table:number-columns-repeated='16380'/></table:table-row>"
        for row in [["Lake", "Depth"], ["Low", "3"]]
    )
    wide = '<table:table-cell table:number-columns-repeated="16384"/>'
    empty = f'<table:table-row table:number-rows-repeated="1048570">{wide}</table:table-row>'
    path = make_odf(tmp_path / "a.ods", f'<table:table table:name="Lakes">{rows}{empty}</table:table>', "spreadsheet")
    assert (titled_texts(path), metadata_of(path, "sheet")) == ([("a > Lakes", "Lake: Low; Depth: 3")], ["Lakes"])
    page = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Keepers</text:p></draw:text-box></draw:frame>'
        "<draw:frame><draw:text-box><text:p>Dana kept it.</text:p></draw:text-box></draw:frame></draw:page>"
    )
    path = make_odf(tmp_path / "a.odp", "<draw:page/>" + page, "presentation")
    assert (titled_texts(path), metadata_of(path, "slide")) == ([("a > Keepers", "Dana kept it.")], [2])


# EPUB


def test_epub_chapters_in_the_order_of_the_book(tmp_path: Path) -> None:
    chapters = [
        "<html><head><title>The Book</title></head><body><h1>One</h1><p>Dana kept it.</p></body></html>",
        "<html><head><title>Two</title></head><body><p>Otto came.</p></body></html>",
    ]
    path = make_epub(tmp_path / "a.epub", chapters)
    assert titled_texts(path) == [("The Book > One", "Dana kept it."), ("The Book > Two", "Otto came.")]
    assert (metadata_of(path, "author")[0], metadata_of(path, "date")[0]) == ("Otto Lind", "2024-02-01")


# Mail

MAIL = """From: Dana Brisk <dana@orvel.example>
To: otto@tarn.example
Date: Tue, 4 Mar 2025 23:30:00 -0500
Subject: =?utf-8?q?The_l=C3=A4mp?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

The l=C3=A4mp is lit.
--c
Content-Type: text/html

<p>Otherwise</p>
--c--
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename=plan.pdf
Content-Transfer-Encoding: base64

JVBERi0=
--b--
"""


def test_mail_subject_sender_day_and_attachments(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_text(MAIL)
    (found,) = passages(tmp_path / "a.eml")
    assert found.title == "The lämp"
    assert "The lämp is lit." in found.text
    assert "Otherwise" not in found.text
    assert "Attachments: plan.pdf" in found.text
    assert (found.metadata["author"], found.metadata["date"]) == ("Dana Brisk", "2025-03-05")
    assert "plan.pdf" in notices(tmp_path / "a.eml")[0]


def test_mails_of_a_box(tmp_path: Path) -> None:
    one = "From {0}@x Tue Mar  4 10:00:00 2025\nFrom: {0}@x.example\nSubject: About {0}\n\nWords of {0}.\n\n"
    (tmp_path / "a.mbox").write_text(one.format("dana") + one.format("otto"))
    assert [title for title, _ in titled_texts(tmp_path / "a.mbox")] == ["About dana", "About otto"]


def test_mail_of_html_alone(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_text("Subject: S\nContent-Type: text/html\n\n<p>Seen</p><p hidden>Unseen</p>")
    assert "".join(text for _, text in titled_texts(tmp_path / "a.eml")) == "Seen"


def mail_of(kind: str, *parts: str) -> str:
    inner = "".join(f"--b\n{part}\n" for part in parts)
    return f"From: Dana <d@x.example>\nContent-Type: multipart/{kind}; boundary=b\n\n{inner}--b--\n"


PLAIN, HTML, CALENDAR = (f"Content-Type: text/{kind}" for kind in ("plain", "html", "calendar"))


@pytest.mark.parametrize(
    ("mail", "text"),
    [
        (mail_of("alternative", f"{PLAIN}\n\n ", f"{HTML}\n\n<p>Only here</p>"), "Only here"),
        (mail_of("alternative", f"{HTML}\n\n<p>Otherwise</p>", f"{PLAIN}\n\nPlain"), "Plain"),
        (mail_of("mixed", f"{PLAIN}\n\nOne", "Content-Type: image/png\n\n", f"{HTML}\n\n<b>two</b>"), "One two"),
        (mail_of("mixed", f"{CALENDAR}\n\nSUMMARY:Herons"), "SUMMARY:Herons"),
        (mail_of("mixed", f"{PLAIN}\n\nOne", f"{PLAIN}; name=a.txt\n\nunread"), "One Attachments: a.txt"),
        (mail_of("digest", "\nSubject: T\n\nInner"), "Inner"),
        ("From: Dana <d@x.example>\nContent-Type: multipart/mixed\n\nNo parts", "No parts"),
    ],
)
def test_all_texts_of_a_mail_are_read(tmp_path: Path, mail: str, text: str) -> None:
    (tmp_path / "a.eml").write_text(mail)
    found = passages(tmp_path / "a.eml")
    assert " ".join(one.text for one in found) == f"From: Dana <d@x.example> {text}"
    assert found[0].metadata["author"] == "Dana"


@pytest.mark.parametrize(
    ("charset", "encoding"),
    [("", "utf-8"), ("", "cp1252"), ("utf-8", "utf-8"), ("iso-8859-1", "cp1252"), ("no-such", "utf-8"), ("utf-16", "utf-16")],
)
def test_mail_of_undeclared_letters(tmp_path: Path, charset: str, encoding: str) -> None:
    declared = f"; charset={charset}" if charset else ""
    packed = "Content-Transfer-Encoding: base64\n" if encoding == "utf-16" else ""
    head, body = f"Subject: Grüße\n{PLAIN}{declared}\n{packed}\n", "Die “Brücke” kostet 5 €.".encode(encoding)
    (tmp_path / "a.eml").write_bytes(head.encode() + (b64encode(body) if packed else body))
    assert titled_texts(tmp_path / "a.eml") == [("Grüße", "Die “Brücke” kostet 5 €.")]


def test_mail_of_characters_beyond_the_declared_encoding(tmp_path: Path) -> None:
    head = b"Subject: =?gb2312?B?" + b64encode("朱镕基".encode("gbk")) + b"?=\nContent-Type: text/plain; charset=gb2312\n\n"
    (tmp_path / "a.eml").write_bytes(head + "朱镕基".encode("gbk"))
    assert titled_texts(tmp_path / "a.eml") == [("朱镕基", "朱镕基")]


# Notebooks, code, org, reStructuredText


def test_notebook_cells_without_pictures(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "\n", "It begins."]},
        {"cell_type": "code", "source": "x = 1\nprint(x)", "outputs": [{"text": ["1\n"]}, {"data": {"image/png": "iVBOR"}}]},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    assert titled_texts(tmp_path / "a.ipynb") == [("Study", "It begins.\nx = 1\nprint(x)\n1")]


def test_code_keeps_lines_and_is_cut_before_definitions(tmp_path: Path) -> None:
    code = "".join(f"def f{i}(x):\n    y = x + {i}\n\n    return y\n\n\n" for i in range(8))
    (tmp_path / "a.py").write_text(code)
    found = passages(tmp_path / "a.py", 30)
    assert len(found) > 2
    assert all(passage.text.startswith("def ") and passage.title == "a.py" for passage in found)
    assert "".join("".join(passage.text.split()) for passage in found) == "".join(code.split())
    lines = code.splitlines()
    assert all(lines[int(passage.metadata["line"]) - 1] == passage.text.splitlines()[0] for passage in found)


ORG = """#+TITLE: The Handbook
* TODO Stations :coast:
:PROPERTIES:
:ID: 5
:END:
See [[https://x.example][the list]] of 10^6 lights.
# a comment
** Keepers
#+CAPTION: Who keeps
| Station | Keeper |
|---------+--------|
| Orvel   | Dana   |
#+BEGIN_SRC python
if x:
    y()
#+END_SRC
"""


def test_org(tmp_path: Path) -> None:
    (tmp_path / "a.org").write_text(ORG)
    assert titled_texts(tmp_path / "a.org") == [
        ("The Handbook > Stations", "See the list of 10^6 lights."),
        ("The Handbook > Stations > Keepers > Who keeps", "Station: Orvel; Keeper: Dana"),
        ("The Handbook > Stations > Keepers", "if x:\n    y()"),
    ]


RST = """
========
Handbook
========

Keepers
-------

The light of 10\\ :sup:`6`, see `here <https://x.example>`_.

.. include:: /etc/passwd
.. raw:: html

   <b>raw</b>

.. list-table:: Who keeps
   :header-rows: 1

   * - Station
     - Keeper
   * - Orvel
     - Dana

::

    if x:
        y()
"""


def test_rst(tmp_path: Path) -> None:
    pytest.importorskip("docutils")
    (tmp_path / "a.rst").write_text(RST)
    assert titled_texts(tmp_path / "a.rst") == [
        ("Handbook > Keepers", "The light of 10^6, see here."),
        ("Handbook > Keepers > Who keeps", "Station: Orvel; Keeper: Dana"),
        ("Handbook > Keepers", "if x:\n    y()"),
    ]
