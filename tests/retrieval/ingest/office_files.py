"""Documents of office programs, made by hand: the parts that such a program writes, without what no reader needs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (("office", "office"), ("text", "text"), ("table", "table"), ("style", "style"), ("draw", "drawing"),
                        ("presentation", "presentation"))
)  # fmt: skip
_TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>{}</dc:title>'
    "<dc:creator>Dana Brisk</dc:creator><dcterms:modified>2025-03-04T10:00:00Z</dcterms:modified></cp:coreProperties>"
)


def make_zip(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def relations(targets: Mapping[str, str]) -> str:
    """``targets`` maps names of parts to kinds; ids are r1, r2 and so on."""
    inner = "".join(
        f'<Relationship Id="r{i}" Type="{_TYPES}/{kind}" Target="{name}"/>' for i, (name, kind) in enumerate(targets.items(), 1)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}</Relationships>'


def w_p(text: str, style: str = "", inner: str = "") -> str:
    said = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{said}<w:r><w:t>{text}</w:t></w:r>{inner}</w:p>" if text else f"<w:p>{said}{inner}</w:p>"


def w_table(rows: list[list[str]], head: bool = False) -> str:
    first = "<w:trPr><w:tblHeader/></w:trPr>" if head else ""
    body = "".join(
        f"<w:tr>{first if not i else ''}{''.join(f'<w:tc>{w_p(cell)}</w:tc>' for cell in row)}</w:tr>"
        for i, row in enumerate(rows)
    )
    return f"<w:tbl>{body}</w:tbl>"


def make_docx(path: Path, body: str, notes: str = "", title: str = "") -> Path:
    styles = "".join(
        f'<w:style w:styleId="{key}"><w:name w:val="{name}"/>{more}</w:style>'
        for key, name, more in (
            ("berschrift1", "heading 1", ""), ("berschrift2", "heading 2", ""), ("Verzeichnis1", "toc 1", ""),
            ("Titel", "Title", ""),
            ("Eigene", "Own", '<w:basedOn w:val="berschrift2"/>'),
        )
    )  # fmt: skip
    parts = {
        "_rels/.rels": relations({"word/document.xml": "officeDocument", "docProps/core.xml": "core-properties"}),
        "docProps/core.xml": CORE.format(title),
        "word/_rels/document.xml.rels": relations({"styles.xml": "styles", "footnotes.xml": "footnotes"}),
        "word/styles.xml": f"<w:styles {W}>{styles}</w:styles>",
        "word/footnotes.xml": f'<w:footnotes {W}><w:footnote w:type="separator" w:id="0"/>{notes}</w:footnotes>',
        "word/document.xml": f"<w:document {W} xmlns:mc='urn:mc' xmlns:v='urn:v'><w:body>{body}</w:body></w:document>",
    }
    return make_zip(path, parts)


def a_shape(text: str, kind: str = "") -> str:
    place = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else "<p:nvPr/>"
    return f"<p:sp><p:nvSpPr>{place}</p:nvSpPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def make_pptx(path: Path, slides: list[str], notes: str = "") -> Path:
    """``notes`` are those of the first slide. Parts are numbered in the other order than slides."""
    count = len(slides)
    names = [f"slides/slide{count - i}.xml" for i in range(count)]
    ids = "".join(f'<p:sldId id="{300 - i}" r:id="r{i}"/>' for i in range(1, count + 1))
    parts = {
        "_rels/.rels": relations({"ppt/presentation.xml": "officeDocument"}),
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(dict.fromkeys(names, "slide")),
        f"ppt/slides/_rels/slide{count}.xml.rels": relations({"../notesSlides/notesSlide1.xml": "notesSlide"}),
        "ppt/notesSlides/notesSlide1.xml": f"<p:notes {P} {A}>{a_shape('7', 'sldNum')}{a_shape(notes, 'body')}</p:notes>",
    }
    for name, slide in zip(names, slides, strict=True):
        parts[f"ppt/{name}"] = f"<p:sld {P} {A}>{slide}</p:sld>"
    return make_zip(path, parts)


def make_xlsx(path: Path, sheets: Mapping[str, str], state: str = "visible", merged: str = "") -> Path:
    """Sheets by name, each the content of its ``sheetData``; ``state`` is that of the first, ``merged`` are ranges of cells in
    all of them."""
    ids = "".join(
        f'<sheet name="{name}" sheetId="{i}" state="{state if i == 1 else "visible"}" r:id="r{i}"/>'
        for i, name in enumerate(sheets, 1)
    )
    ranges = "".join(f'<mergeCell ref="{one}"/>' for one in merged.split())
    after = f"<mergeCells>{ranges}</mergeCells>" if ranges else ""
    files = {f"worksheets/sheet{i}.xml": "worksheet" for i in range(1, len(sheets) + 1)}
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/></Types>',
        "_rels/.rels": relations({"xl/workbook.xml": "officeDocument"}),
        "xl/workbook.xml": f"<workbook {S} {R}><sheets>{ids}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(files),
    }
    for i, rows in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{i}.xml"] = f"<worksheet {S}><sheetData>{rows}</sheetData>{after}</worksheet>"
    return make_zip(path, parts)


def x_rows(rows: list[list[str | float]]) -> str:
    out = []
    for i, row in enumerate(rows, 1):
        cells = "".join(
            f'<c r="{chr(65 + j)}{i}"><v>{cell}</v></c>' if isinstance(cell, int | float)
            else f'<c r="{chr(65 + j)}{i}" t="inlineStr"><is><t>{cell}</t></is></c>'
            for j, cell in enumerate(row)
        )  # fmt: skip
        out.append(f'<row r="{i}">{cells}</row>')
    return "".join(out)


def make_odf(path: Path, body: str, kind: str = "text", styles: str = "", manifest: str = "") -> Path:
    content = (
        f"<office:document-content {OFFICE}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    meta = (
        f'<office:document-meta {OFFICE} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
        "<dc:creator>Dana Brisk</dc:creator><dc:date>2025-03-04T10:00:00</dc:date></office:meta></office:document-meta>"
    )
    parts = {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content, "meta.xml": meta}
    return make_zip(path, parts | ({"META-INF/manifest.xml": manifest} if manifest else {}))


def make_epub(path: Path, chapters: list[str], title: str = "The Book") -> Path:
    items = "".join(
        f'<item id="c{i}" href="text/c{i}.xhtml" media-type="application/xhtml+xml"/>' for i in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title><dc:creator>Otto Lind</dc:creator><dc:date>2024-02-01</dc:date></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for i, chapter in enumerate(chapters):
        parts[f"OEBPS/text/c{i}.xhtml"] = chapter
    return make_zip(path, parts)
