"""EPUB: the chapters in the order of the book, each read as a page of HTML."""

from __future__ import annotations

import codecs
import posixpath
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gnothi.retrieval.ingest.archive import Archive, Element, attribute, local, resolved, text_of
from gnothi.retrieval.ingest.base import Block, day
from gnothi.retrieval.ingest.html import page_blocks
from gnothi.retrieval.ingest.outline import Outline

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"


def blocks(path: Path) -> Iterator[Block]:
    with closing(Archive(path, "an EPUB")) as archive:
        package = next((attribute(one, "full-path") for one in archive.tree(_CONTAINER).iter("{*}rootfile")), "")
        if not package:
            raise archive.unreadable("it does not say where its book is")
        root = archive.tree(package)
        outline = _outline(path, root)
        locked = (
            {attribute(one, "URI") for one in archive.tree(_ENCRYPTION).iter("{*}CipherReference")}
            if _ENCRYPTION in archive
            else ()
        )
        for part in _chapters(root, posixpath.dirname(package)):
            if part in locked:
                raise archive.protected()
            if part not in archive:
                yield outline.notice(f"lacks its chapter {part}")
                continue
            yield from outline.enter(1, "")
            yield from page_blocks(_texts(archive, part), outline)


def _outline(path: Path, package: Element) -> Outline:
    fields: dict[str, str] = {}
    for one in package.iter("{*}title", "{*}creator", "{*}date"):
        fields.setdefault(local(one), " ".join(text_of(one).split()))
    outline = Outline(path.stem)
    outline.document = fields.get("title", "")
    outline.describe(fields.get("creator", ""), day(fields.get("date")))
    return outline


def _chapters(package: Element, folder: str) -> Iterator[str]:
    """Names of parts, without the table of contents."""
    items = {one.get("id"): one for one in package.iter("{*}item")}
    for reference in package.iter("{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and "nav" not in item.get("properties", "").split() and "html" in item.get("media-type", "html"):
            yield resolved(folder, item.get("href", ""))


def _texts(archive: Archive, part: str) -> Iterator[tuple[str, int]]:
    with archive.open(part) as file:
        head = file.read(2)
        name = "utf-16" if head in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
        decoder = codecs.getincrementaldecoder(name)("replace")
        yield decoder.decode(head), archive.share
        while data := file.read(1 << 16):
            yield decoder.decode(data), archive.share
        yield decoder.decode(b"", final=True), archive.share
