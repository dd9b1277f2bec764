"""DOCX: paragraphs under their headings, rows of tables, notes after the paragraph that refers to them, text boxes.

Read element by element, so that memory does not grow with the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from gnothi.retrieval.ingest.archive import Archive, Element, attribute, forget, local
from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.office import main_part, number, outline, paragraph_text, properties
from gnothi.retrieval.ingest.tables import Cell, Table

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|table of figures|index) ?\d*", re.IGNORECASE)  # they repeat headings, with numbers of pages
_READ = ("{*}p", "{*}tbl", "{*}tr", "{*}tc", "{*}Fallback")


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(blocks(path), key, words)


def blocks(path: Path) -> Iterator[Block]:
    with closing(Archive(path, "a DOCX file")) as archive:
        main = main_part(archive, "word/document.xml")
        parts = {kind: name for kind, name in archive.targets(main).values() if name in archive}
        styles = _styles(archive, parts.get("styles"))
        notes: dict[str, dict[str, str]] = {
            kind: _notes(archive, parts[kind]) for kind in ("footnotes", "endnotes") if kind in parts
        }
        yield from _Body(archive, styles, notes).blocks(main)


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
        self._outline = outline(archive)
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
        said = properties(paragraph)
        style = self._styles.get(attribute(said["pStyle"], "val") if "pStyle" in said else "", "")
        notes = "".join(f"\n{note}" for note in self._notes_of(paragraph))
        if _CONTENTS.fullmatch(style):
            return
        if self._tables:
            self._tables[-1].cell.append(text + notes)
            return
        level = number(attribute(said["outlineLvl"], "val"), 9) + 1 if "outlineLvl" in said else 10
        if found := _HEADING.fullmatch(style):
            level = int(found[1])
        if style.lower() == "title" and not self._outline.document:
            self._outline.document = " ".join(text.split())
        elif text.strip() and level < 10:
            yield from self._outline.enter(level, text)
        elif text.strip():
            yield self._outline.block(f"{text}{notes}\n\n", self._archive.share)

    def _notes_of(self, paragraph: Element) -> Iterator[str]:
        for reference in paragraph.iter("{*}footnoteReference", "{*}endnoteReference"):
            kind = local(reference).removesuffix("Reference") + "s"
            if note := self._notes.get(kind, {}).get(attribute(reference, "id")):
                yield note

    def _end(self, name: str, element: Element) -> Iterator[Block]:
        top = self._tables[-1]
        if name == "tc":
            said = properties(element)
            columns = number(attribute(said["gridSpan"], "val"), 1) if "gridSpan" in said else 1
            text, top.cell = "\n".join(top.cell), []
            place = sum(cell.columns for cell in top.row)
            if "vMerge" in said and attribute(said["vMerge"], "val") != "restart":
                text = top.above.get(place, text)
            top.above[place] = text
            top.row.append(Cell(text, columns))
        elif name == "tr":
            is_head = "tblHeader" in properties(element)
            row, top.row = [cell._replace(head=is_head) for cell in top.row], []
            if len(self._tables) == 1:
                yield from self._outline.said(top.table, top.table.add(row), self._archive.share)
            else:  # a table in a cell is text of the cell
                self._tables[-2].cell.append("; ".join(cell.text for cell in row if cell.text.strip()))
            forget(element)
        elif name == "tbl":
            self._tables.pop()
            if not self._tables:
                yield from self._outline.said(top.table, top.table.end(), self._archive.share)


def _styles(archive: Archive, part: str | None) -> dict[str, str]:
    """What each style is called; ids are of the language that Word speaks, names of what it has built in are not. A style with
    a level in the outline, its own or of the style it is based on, is a heading."""
    names: dict[str, str] = {}
    levels: dict[str, str] = {}
    based: dict[str, str] = {}
    for event, style in archive.events(part, "{*}style") if part else ():
        if event == "end":
            said = {local(one): one for one in style.iter()}
            key = attribute(style, "styleId")
            names[key] = attribute(said["name"], "val") if "name" in said else key
            based[key] = attribute(said["basedOn"], "val") if "basedOn" in said else ""
            levels[key] = attribute(said["outlineLvl"], "val") if "outlineLvl" in said else ""
            forget(style)
    for key in names:
        above, seen = key, set[str]()
        while above and above not in seen and not _HEADING.fullmatch(names[key]):
            seen.add(above)
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
