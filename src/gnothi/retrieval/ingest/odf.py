"""OpenDocument (ODT, ODP, ODS): headings, paragraphs, notes, slides and sheets of ``content.xml``, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gnothi.retrieval.ingest.archive import Archive, Element, attribute, forget, local, text_of
from gnothi.retrieval.ingest.base import Block, day
from gnothi.retrieval.ingest.office import number
from gnothi.retrieval.ingest.outline import Outline, raised
from gnothi.retrieval.ingest.tables import MOST_COLUMNS, Cell, Table

_READ = tuple(
    "{*}" + name
    for name in (
        "h", "p", "table", "table-row", "table-cell", "covered-table-cell", "table-header-rows", "page", "notes", "style",
        "tracked-changes", "table-of-content", "annotation", "list-header", "note-citation",
    )
)  # fmt: skip
_LEFT_OUT = ("tracked-changes", "table-of-content", "annotation")
_MOST_REPEATED = 1_000_000
_FAMILIES = {"p": "paragraph", "h": "paragraph", "span": "text", "table": "table", "page": "drawing-page"}
_AS = {"tab": "\t", "line-break": "\n"}


def blocks(path: Path) -> Iterator[Block]:
    with closing(Archive(path, "an OpenDocument file")) as archive:
        if "META-INF/manifest.xml" in archive and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise archive.protected()
        yield from _Content(archive, _outline(archive)).blocks()


def _outline(archive: Archive) -> Outline:
    outline = Outline(archive.path.stem)
    if "meta.xml" in archive:
        fields = {
            local(one): text_of(one).strip() for one in archive.tree("meta.xml").iter("{*}title", "{*}creator", "{*}date")
        }
        outline.document = " ".join(fields.get("title", "").split())
        outline.describe(fields.get("creator", ""), day(fields.get("date")))
    return outline


class _Content:
    def __init__(self, archive: Archive, outline: Outline) -> None:
        self._archive = archive
        self._outline = outline
        self._left_out = 0
        self._tables: list[Table] = []
        self._rows: list[list[Cell]] = []
        self._cell: list[str] = []
        self._in_heads = False
        self._slides = 0
        self._repeated = 0
        self._places: dict[str, str | int] = {}
        self._raised: set[str] = set()  # styles of raised text
        self._hidden: set[tuple[str, str]] = set()  # families and names of styles of what is not shown

    def blocks(self) -> Iterator[Block]:
        for event, element in self._archive.events("content.xml", *_READ):
            name = local(element)
            if name in _LEFT_OUT or (name in ("table", "page") and self._is_hidden(element)):
                self._left_out += 1 if event == "start" else -1
                if event == "end":
                    if name != "annotation":  # which stands in a paragraph, before more of its text
                        forget(element)
                elif name == "page":
                    self._slides += 1
                    yield self._outline.notice(f"has a hidden slide, {self._slides}, which is left out")
                elif name == "table" and local(element.getparent()) == "spreadsheet":
                    yield self._outline.notice(f"has a hidden sheet {attribute(element, 'name')!r}, which is left out")
            elif self._left_out:
                if name == "table-row" and event == "end":
                    forget(element)
            elif event == "start":
                yield from self._start(name, element)
            else:
                yield from self._end(name, element)

    def _start(self, name: str, element: Element) -> Iterator[Block]:
        if name == "table":
            is_sheet = local(element.getparent()) == "spreadsheet"
            if is_sheet:
                self._places = {"sheet": attribute(element, "name")}
                yield from self._outline.enter(2, attribute(element, "name"))
            self._tables.append(Table(spreadsheet=is_sheet))
        elif name == "table-row":
            self._rows.append([])
        elif name == "table-header-rows":
            self._in_heads = True
        elif name == "page":
            self._slides += 1
            self._places = {"slide": self._slides}
            yield from self._outline.enter(2, "")

    def _end(self, name: str, element: Element) -> Iterator[Block]:
        if name in ("p", "h"):
            if next(element.iterancestors("{*}note", "{*}p", "{*}h"), None) is None:  # else it is read with what is around it
                yield from self._paragraph(name, element)
                forget(element)
        elif name in ("table-cell", "covered-table-cell"):
            self._end_cell(name, element)
        elif name == "table-row":
            yield from self._end_row(element)
        elif name == "table-header-rows":
            self._in_heads = False
        elif name == "style":
            if any({attribute(one, "display"), attribute(one, "visibility")} & {"false", "none", "hidden"} for one in element):
                self._hidden.add((attribute(element, "family"), attribute(element, "name")))
            position = next((attribute(one, "text-position") for one in element.iter("{*}text-properties")), "")
            if position.startswith("super") or (position.split("%")[0].isdigit() and position.split("%")[0] != "0"):
                self._raised.add(attribute(element, "name"))
        elif name == "table" and self._tables:
            table = self._tables.pop()
            if not self._tables:
                yield from self._outline.row_blocks(table, table.end(), self._archive.share, self._places)
            forget(element)
        elif name == "page":
            forget(element)

    def _paragraph(self, name: str, paragraph: Element) -> Iterator[Block]:
        text = "" if self._is_hidden(paragraph) else self._text(paragraph)
        if self._tables:
            self._cell.append(text)
        elif not text.strip():
            return
        elif name == "h":
            yield from self._outline.enter(number(attribute(paragraph, "outline-level"), 1), text)
        elif any(attribute(frame, "class") == "title" for frame in paragraph.iterancestors("{*}frame")):
            yield from self._outline.enter(2, text)
        else:
            yield self._outline.block(text + "\n\n", self._archive.share, places=self._places)

    def _is_hidden(self, element: Element) -> bool:
        return (_FAMILIES.get(local(element), ""), attribute(element, "style-name")) in self._hidden

    def _text(self, element: Element) -> str:
        """With notes at its end; inserted text is in, and text that was deleted stands elsewhere."""
        notes: list[str] = []
        return "\n".join([self._inner(element, notes), *notes])

    def _inner(self, element: Element, notes: list[str]) -> str:
        out = [element.text or ""]
        for child in element:
            name = local(child)
            if name == "s":
                out.append(" " * min(number(attribute(child, "c"), 1), 100))
            elif name in _AS:
                out.append(_AS[name])
            elif name == "note":
                notes += [" ".join(text_of(body).split()) for body in child.iter("{*}note-body")]
            elif name not in ("annotation", "ruby-text", "title", "desc") and not self._is_hidden(child):
                inner = self._inner(child, notes) + ("\n" if name in ("p", "h") else "")
                is_raised = name == "span" and attribute(child, "style-name") in self._raised
                out.append(raised("".join(out[-3:]), inner) if is_raised else inner)
            out.append(child.tail or "")
        return "".join(out)

    def _end_cell(self, name: str, element: Element) -> None:
        if not self._rows:
            return
        text, self._cell = "\n".join(self._cell), []
        if name == "covered-table-cell":
            return
        row = self._rows[-1]
        columns, rows, repeated = (
            number(attribute(element, f"number-{what}"), otherwise)
            for what, otherwise in (("columns-spanned", 1), ("rows-spanned", 1), ("columns-repeated", MOST_COLUMNS))
        )
        if not attribute(element, "number-columns-repeated"):
            repeated = 1
        if not text.strip():
            row.append(Cell("", columns * min(repeated, MOST_COLUMNS)))
            return
        self._repeated += repeated - 1
        if self._repeated > _MOST_REPEATED:
            raise self._archive.unreadable(f"it repeats more than {_MOST_REPEATED:,} cells")
        row += [Cell(text, columns, rows, self._in_heads)] * repeated

    def _end_row(self, element: Element) -> Iterator[Block]:
        row = self._rows.pop() if self._rows else []
        if len(self._tables) == 1:
            table = self._tables[0]
            yield from self._outline.row_blocks(table, table.add(row), self._archive.share, self._places)
        elif self._tables:
            self._cell.append("; ".join(cell.text for cell in row if cell.text.strip()))
        forget(element)
