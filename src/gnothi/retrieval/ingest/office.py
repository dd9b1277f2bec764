"""DOCX and PPTX, and what Microsoft's formats have in common (ECMA-376): properties, relations, runs of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from gnothi.retrieval.ingest.archive import Archive, Element, attribute, forget, local, text_of
from gnothi.retrieval.ingest.base import Block, day
from gnothi.retrieval.ingest.outline import Outline, raised
from gnothi.retrieval.ingest.tables import Cell, Table

_NOT_SHOWN = frozenset(
    ("del", "moveFrom", "instrText", "delText", "Fallback", "rt", "txbxContent", "rPr", "pPr", "sdtPr", "endParaRPr")
)
_AS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def outline(archive: Archive) -> Outline:
    """With the document's own title, its author and the day it was last changed."""
    result = Outline(archive.path.stem)
    properties = [name for kind, name in archive.targets("").values() if kind == "core-properties"]
    for name in properties[:1]:
        if name in archive:
            core = {local(one): text_of(one).strip() for one in archive.tree(name)}
            result.document = core.get("title", "")
            result.describe(core.get("creator", ""), day(core.get("modified") or core.get("created")))
    return result


def main_part(archive: Archive, expected: str) -> str:
    """The name of the part that all others belong to."""
    return next((name for kind, name in archive.targets("").values() if kind == "officeDocument" and name in archive), expected)


def paragraph_text(paragraph: Element) -> str:
    """Inserted text is in, deleted and hidden text, codes of fields and text boxes (paragraphs of their own) are out."""
    out: list[str] = []
    for part in _parts(paragraph):
        name = local(part)
        if name == "t":
            out.append(part.text or "")
        elif name in _AS:
            out.append(_AS[name])
        elif name == "r" and _is_raised(part):
            out.append(raised("".join(out[-3:]), paragraph_text(part)))
        elif name == "sup":  # of a formula
            out.append("^" + paragraph_text(part))
    return "".join(out)


def _parts(element: Element) -> Iterator[Element]:
    """What is shown below an element, in order; of raised text and of powers in formulas the outermost element only."""
    for child in element:
        name = local(child)
        if name in _NOT_SHOWN or (name == "r" and _has(child, "vanish")):
            continue
        yield child
        if name != "sup" and not (name == "r" and _is_raised(child)):
            yield from _parts(child)


def properties(element: Element) -> dict[str, Element]:
    """Of a run, paragraph, row or cell: what stands in its first element."""
    first = next(iter(element), None)
    return {local(one): one for one in first} if first is not None and local(first).endswith("Pr") else {}


def _diagrams(archive: Archive, part: str) -> Iterator[str]:
    """The texts of SmartArt, which stand in parts of their own."""
    for kind, name in archive.targets(part).values():
        if kind == "diagramData" and name in archive and (text := _text(archive.tree(name))):
            yield text + "\n\n"


def number(text: str, otherwise: int) -> int:
    """A small whole number of an attribute."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else otherwise


def _has(run: Element, name: str) -> bool:
    element = properties(run).get(name)
    return element is not None and attribute(element, "val") not in ("0", "false", "off")


def _is_raised(run: Element) -> bool:
    """By Word's property or by PowerPoint's share of the height of a line."""
    first = next(iter(run), None)
    if first is None or local(first) != "rPr":
        return False
    baseline = first.get("baseline", "")
    element = properties(run).get("vertAlign")
    return baseline.lstrip("0").rstrip("%").isdigit() or (element is not None and attribute(element, "val") == "superscript")


# DOCX: paragraphs under their headings, rows of tables, notes after the paragraph that refers to them, text boxes. Read
# element by element, so that memory does not grow with the file.

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|table of figures|index) ?\d*", re.IGNORECASE)  # they repeat headings, with numbers of pages
_READ = ("{*}p", "{*}tbl", "{*}tr", "{*}tc", "{*}Fallback")


def docx_blocks(path: Path) -> Iterator[Block]:
    with closing(Archive(path, "a DOCX file")) as archive:
        main = main_part(archive, "word/document.xml")
        parts = {kind: name for kind, name in archive.targets(main).values() if name in archive}
        styles = _styles(archive, parts.get("styles"))
        notes: dict[str, dict[str, str]] = {
            kind: _notes(archive, parts[kind]) for kind in ("footnotes", "endnotes") if kind in parts
        }
        body = _Body(archive, styles, notes)
        yield from body.blocks(main)
        for text in _diagrams(archive, main):
            yield body.outline.block(text, archive.share)


@dataclass(slots=True)
class _Table:
    table: Table = field(default_factory=Table)
    row: list[Cell] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)
    above: dict[int, str] = field(default_factory=dict)  # by column: text of a cell that goes on in the next row


class _Body:
    def __init__(self, archive: Archive, styles: dict[str, str], notes: dict[str, dict[str, str]]) -> None:
        self._archive = archive
        self._styles = styles
        self._notes = notes
        self.outline = outline(archive)
        self._tables: list[_Table] = []
        self._other = 0  # a second version of a drawing, for older programs

    def blocks(self, part: str) -> Iterator[Block]:
        for event, element in self._archive.events(part, *_READ):
            name = local(element)
            if name == "Fallback":
                self._other += 1 if event == "start" else -1
                if event == "end":
                    element.clear()
            elif event == "start":
                if name == "tbl":
                    self._tables.append(_Table())
            elif name == "p":
                if not self._other:
                    yield from self._paragraph(element)
                element.clear() if self._tables else forget(element)  # before it stand the cell's properties
            elif self._tables:
                yield from self._end(name, element)

    def _paragraph(self, paragraph: Element) -> Iterator[Block]:
        text = paragraph_text(paragraph)
        formatting = properties(paragraph)
        style = self._styles.get(attribute(formatting["pStyle"], "val") if "pStyle" in formatting else "", "")
        notes = "".join(f"\n{note}" for note in self._notes_of(paragraph))
        if _CONTENTS.fullmatch(style):
            return
        if self._tables:
            self._tables[-1].cell.append(text + notes)
            return
        level = number(attribute(formatting["outlineLvl"], "val"), 9) + 1 if "outlineLvl" in formatting else 10
        if match := _HEADING.fullmatch(style):
            level = int(match[1])
        if style.lower() == "title" and not self.outline.document:
            self.outline.document = text
        elif text.strip() and level < 10:
            yield from self.outline.enter(level, text)
        elif text.strip():
            yield self.outline.block(f"{text}{notes}\n\n", self._archive.share)

    def _notes_of(self, paragraph: Element) -> Iterator[str]:
        for reference in paragraph.iter("{*}footnoteReference", "{*}endnoteReference"):
            kind = local(reference).removesuffix("Reference") + "s"
            if note := self._notes.get(kind, {}).get(attribute(reference, "id")):
                yield note

    def _end(self, name: str, element: Element) -> Iterator[Block]:
        top = self._tables[-1]
        if name == "tc":
            formatting = properties(element)
            columns = number(attribute(formatting["gridSpan"], "val"), 1) if "gridSpan" in formatting else 1
            text, top.cell = "\n".join(top.cell), []
            place = sum(cell.columns for cell in top.row)
            if "vMerge" in formatting and attribute(formatting["vMerge"], "val") != "restart":
                text = top.above.get(place, text)
            top.above[place] = text
            top.row.append(Cell(text, columns))
        elif name == "tr":
            is_head = "tblHeader" in properties(element)
            row, top.row = [cell._replace(head=is_head) for cell in top.row], []
            if len(self._tables) == 1:
                yield from self.outline.row_blocks(top.table, top.table.add(row), self._archive.share)
            else:  # a table in a cell is text of the cell
                self._tables[-2].cell.append("; ".join(cell.text for cell in row if cell.text.strip()))
            forget(element)
        elif name == "tbl":
            self._tables.pop()
            if not self._tables:
                yield from self.outline.row_blocks(top.table, top.table.end(), self._archive.share)


def _styles(archive: Archive, part: str | None) -> dict[str, str]:
    """What each style is called; ids are of the language that Word speaks, names of what it has built in are not. A style with
    a level in the outline, its own or of the style it is based on, is a heading."""
    names: dict[str, str] = {}
    levels: dict[str, str] = {}
    based: dict[str, str] = {}
    for event, style in archive.events(part, "{*}style") if part else ():
        if event == "end":
            parts = {local(one): one for one in style.iter()}
            key = attribute(style, "styleId")
            names[key] = attribute(parts["name"], "val") if "name" in parts else key
            based[key] = attribute(parts["basedOn"], "val") if "basedOn" in parts else ""
            levels[key] = attribute(parts["outlineLvl"], "val") if "outlineLvl" in parts else ""
            forget(style)
    for key in names:
        above, visited = key, set[str]()
        while above and above not in visited and not _HEADING.fullmatch(names[key]):
            visited.add(above)
            if (level := number(levels.get(above, ""), 9)) < 9:
                names[key] = f"heading {level + 1}"
            elif _HEADING.fullmatch(names.get(above, "")):
                names[key] = names[above]
            above = based.get(above, "")
    return names


def _notes(archive: Archive, part: str) -> dict[str, str]:
    notes = {}
    for event, note in archive.events(part, "{*}footnote", "{*}endnote"):
        if event == "end":
            if attribute(note, "type") in ("", "normal"):
                notes[attribute(note, "id")] = " ".join(" ".join(map(paragraph_text, note.iter("{*}p"))).split())
            forget(note)
    return notes


# PPTX: slides in the order of the show, each a section under its title, with rows of tables and the speaker's notes.

_TITLES = ("title", "ctrTitle")
_NO_TEXT = ("sldNum", "dt", "ftr", "hdr", "sldImg")  # the same on every slide


def pptx_blocks(path: Path) -> Iterator[Block]:
    with closing(Archive(path, "a PPTX file")) as archive:
        main = main_part(archive, "ppt/presentation.xml")
        slides = archive.targets(main)
        document = outline(archive)
        for place, one in enumerate(archive.tree(main).iter("{*}sldId"), 1):
            # Its id of the presentation's relations; it has another id without a namespace.
            relation = next((str(value) for name, value in one.attrib.items() if name.endswith("}id")), "")
            _, part = slides.get(relation, ("", ""))
            if part in archive:
                yield from _slide(archive, part, document, place)


def _slide(archive: Archive, part: str, outline: Outline, place: int) -> Iterator[Block]:
    root, where = archive.tree(part), {"slide": place}
    if root.get("show") in ("0", "false"):
        yield outline.notice(f"has a hidden slide, {place}, which is left out")
        return
    shapes = [
        (_kind(shape), shape)
        for shape in root.iter("{*}sp", "{*}tbl")
        if next(shape.iterancestors("{*}Fallback"), None) is None
    ]
    title = " ".join(_text(shape) for kind, shape in shapes if kind in _TITLES).replace("\n", " ").strip()
    yield from outline.enter(2, title)
    for kind, shape in shapes:
        if local(shape) == "tbl":
            first = next(shape.iter("{*}tblPr"), None)
            heads = 1 if first is not None and first.get("firstRow") in ("1", "true") else None
            yield from outline.table(map(_row, shape.iter("{*}tr")), Table(heads), archive.share, where)
        elif kind not in _NO_TEXT and (kind not in _TITLES or not title) and (text := _text(shape)):
            yield outline.block(text + "\n\n", archive.share, places=where)
    for text in _diagrams(archive, part):
        yield outline.block(text, archive.share, places=where)
    for relation, notes in archive.targets(part).values():
        if relation == "notesSlide" and notes in archive:
            for shape in archive.tree(notes).iter("{*}sp"):
                if _kind(shape) not in _NO_TEXT and (text := _text(shape)):
                    yield outline.block(text + "\n\n", archive.share, places=where)
    if title and not any(
        kind not in (*_TITLES, *_NO_TEXT) and (local(shape) == "tbl" or _text(shape)) for kind, shape in shapes
    ):
        yield outline.block(title + "\n\n", archive.share, places=where)  # it is all that the slide says


def _kind(shape: Element) -> str:
    """Of the place in the layout that it fills."""
    if local(shape) == "tbl":
        return "table"
    place = next(shape.iter("{*}ph"), None)
    return (place.get("type") or "body") if place is not None else ""


def _text(shape: Element) -> str:
    return "\n".join(filter(str.strip, map(paragraph_text, shape.iter("{*}p"))))


def _row(row: Element) -> list[Cell]:
    return [
        Cell(_text(cell), number(cell.get("gridSpan", ""), 1), number(cell.get("rowSpan", ""), 1))
        for cell in row.iterchildren("{*}tc")
        if attribute(cell, "hMerge") not in ("1", "true") and attribute(cell, "vMerge") not in ("1", "true")
    ]
