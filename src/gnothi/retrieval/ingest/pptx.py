"""PPTX: slides in the order of the show, each a section under its title, with rows of tables and the speaker's notes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gnothi.retrieval.ingest.archive import Archive, Element, attribute, local
from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps
from gnothi.retrieval.ingest.office import main_part, number, outline, paragraph_text
from gnothi.retrieval.ingest.outline import Outline
from gnothi.retrieval.ingest.tables import Cell, Table

_TITLES = ("title", "ctrTitle")
_NO_TEXT = ("sldNum", "dt", "ftr", "hdr", "sldImg")  # the same on every slide


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(blocks(path), key, words)


def blocks(path: Path) -> Iterator[Block]:
    with closing(Archive(path, "a PPTX file")) as archive:
        main = main_part(archive, "ppt/presentation.xml")
        slides = archive.targets(main)
        found = outline(archive)
        for place, one in enumerate(archive.tree(main).iter("{*}sldId"), 1):
            _, part = slides.get(_relation(one), ("", ""))
            if part in archive:
                yield from _slide(archive, part, found, place)


def _relation(slide: Element) -> str:
    """Its id of the presentation's relations; it has another id without a namespace."""
    return next((str(value) for name, value in slide.attrib.items() if name.endswith("}id")), "")


def _slide(archive: Archive, part: str, outline: Outline, place: int) -> Iterator[Block]:
    root, where = archive.tree(part), {"slide": place}
    if root.get("show") in ("0", "false"):
        yield outline.notice(f"has a hidden slide, {place}, which is left out")
        return
    shapes = [(_kind(shape), shape) for shape in root.iter("{*}sp", "{*}tbl") if not _older(shape)]
    title = " ".join(_text(shape) for kind, shape in shapes if kind in _TITLES).replace("\n", " ").strip()
    yield from outline.enter(2, title)
    for kind, shape in shapes:
        if local(shape) == "tbl":
            first = next(shape.iter("{*}tblPr"), None)
            heads = 1 if first is not None and first.get("firstRow") in ("1", "true") else None
            yield from outline.table(map(_row, shape.iter("{*}tr")), Table(heads), archive.share, where)
        elif kind not in _NO_TEXT and (kind not in _TITLES or not title) and (text := _text(shape)):
            yield outline.block(text + "\n\n", archive.share, places=where)
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


def _older(shape: Element) -> bool:
    return any(local(one) == "Fallback" for one in shape.iterancestors())


def _text(shape: Element) -> str:
    return "\n".join(filter(str.strip, map(paragraph_text, shape.iter("{*}p"))))


def _row(row: Element) -> list[Cell]:
    return [
        Cell(_text(cell), number(cell.get("gridSpan", ""), 1), number(cell.get("rowSpan", ""), 1))
        for cell in row.iterchildren("{*}tc")
        if attribute(cell, "hMerge") not in ("1", "true") and attribute(cell, "vMerge") not in ("1", "true")
    ]
