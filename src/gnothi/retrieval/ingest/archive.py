"""Zip files of XML from anywhere (Office, OpenDocument, EPUB), read in pieces and never unpacked to disk.

What a header says of a size is not believed: bytes are counted while they are read. Entities are neither fetched nor replaced.
"""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from lxml import etree

from gnothi.retrieval.ingest.base import Unreadable

MOST = 512 << 20
"""Bytes that are unpacked of one file, at most."""
_RATIO = 200
_SMALL = 4 << 20  # so much may come from a file of any size
_MOST_AT_ONCE = 24 << 20
_MOST_NAMES = 8 << 20  # bytes of the list of parts
_CFB = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the older container of Microsoft, in which a protected file is kept
_KNOWN = {
    b"%PDF": "it is a PDF", b"{\\rt": "it is RTF", b"<htm": "it is HTML", b"<!DO": "it is HTML", b"<?xm": "it is XML",
    _CFB[:4]: "it is an Office file of before 2007",
}  # fmt: skip
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, UnicodeDecodeError)
_PARSING = {"resolve_entities": False, "no_network": True, "load_dtd": False, "remove_comments": True, "remove_pis": True}
Element = Any


class Archive:
    """``noun`` is what the file is to be, as messages name it. Raises Unreadable for what is no such file, here and while
    reading."""

    def __init__(self, path: Path, noun: str) -> None:
        self.path = path
        self.noun = noun
        self.done = 0  # bytes unpacked
        self._size = path.stat().st_size
        self._limit = min(MOST, max(_SMALL, _RATIO * self._size))
        _check(path, noun)
        with self.errors():
            self._zip = zipfile.ZipFile(path)
        self._names = {name.lower(): name for name in reversed(self._zip.namelist())}

    def close(self) -> None:
        self._zip.close()

    @property
    def share(self) -> int:
        """Bytes of the file that what was read may stand for."""
        return min(self._size, self._zip.fp.tell() if self._zip.fp else 0)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except etree.XMLSyntaxError as error:
            raise self.unreadable(f"its XML is broken: {str(error.msg).rstrip('.')}") from None
        except _BROKEN as error:
            raise self.unreadable(str(error).rstrip(".") or type(error).__name__) from None

    def unreadable(self, why: str) -> Unreadable:
        return Unreadable(f"{self.path} is not {self.noun} that can be read: {why}. Save it again, or leave it out.")

    def protected(self) -> Unreadable:
        return Unreadable(f"{self.path} is protected by a password. Save it without one.")

    @contextmanager
    def open(self, name: str) -> Iterator[_Counted]:
        """A part of the archive. Raises Unreadable where there is none of that name."""
        with self.errors():
            if name not in self:
                raise self.unreadable(f"it holds no {name}")
            info = self._zip.getinfo(self._names[name.lower()])
            if info.flag_bits & 1:
                raise self.protected()
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.unreadable(f"{name} is packed in a way that such files do not use")
            with self._zip.open(info) as file:
                yield _Counted(self, file)

    def read(self, name: str) -> bytes:
        """A whole part, which is to be small."""
        with self.open(name) as file:
            data = file.read(_MOST_AT_ONCE + 1)
        if len(data) > _MOST_AT_ONCE:
            raise self.unreadable(f"{name} is larger than {_MOST_AT_ONCE >> 20} MB")
        return data

    def count_all(self) -> None:
        """Unpack everything once. Raises Unreadable where that is too much."""
        for name in self._zip.namelist():
            with self.open(name) as file:
                while file.read(1 << 20):
                    pass
        self.done = 0

    def events(self, name: str, *tags: str) -> Iterator[tuple[str, Element]]:
        """``start`` and ``end`` of each element of a part of XML, of those ``tags`` where any are given. The caller clears what
        it has read. Raises Unreadable for a document type, which such files do not have."""
        with self.open(name) as file:
            parsed = etree.iterparse(file, ("start", "end"), tag=tags or None, **_PARSING)
            checked = False
            for event, element in parsed:
                if not checked:
                    self._no_doctype(element.getroottree())
                    checked = True
                yield event, element

    def tree(self, name: str) -> Element:
        """The root element of a small part of XML."""
        parser = etree.XMLParser(**_PARSING)
        data = self.read(name)
        with self.errors():
            root = etree.fromstring(data, parser)
        self._no_doctype(root.getroottree())
        return root

    def _no_doctype(self, tree: Element) -> None:
        if tree.docinfo.internalDTD is not None and self.noun != "an EPUB":
            raise self.unreadable("its XML declares a document type, which such files do not have")

    def targets(self, part: str) -> dict[str, tuple[str, str]]:
        """The relations of a part of an Office file: by id, kind (last part of its address) and name of the other part."""
        folder, name = posixpath.split(part)
        relations = f"{folder}/_rels/{name}.rels".lstrip("/")
        if relations not in self:
            return {}
        return {
            one.get("Id", ""): (one.get("Type", "").rsplit("/", 1)[-1], resolved(folder, one.get("Target", "")))
            for one in self.tree(relations)
            if one.get("TargetMode") != "External"
        }


class _Counted:
    """A part that is being read, whose bytes count."""

    def __init__(self, archive: Archive, file: IO[bytes]) -> None:
        self._archive, self._file = archive, file

    def read(self, size: int = -1) -> bytes:
        archive = self._archive
        remaining = archive._limit - archive.done + 1
        data = self._file.read(min(size, remaining) if size >= 0 else remaining)
        archive.done += len(data)
        if archive.done > archive._limit:
            raise Unreadable(
                f"{archive.path} is refused: it unpacks to more than {archive._limit >> 20} MB "
                f"({min(_RATIO, archive._limit // max(archive._size, 1))} times its size). Leave it out, or split it."
            )
        return data


def resolved(folder: str, target: str) -> str:
    """The name of a part that is named relative to a folder of the archive."""
    path = unquote(urlsplit(target).path)
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def local(element: Element) -> str:
    """The name of an element without its namespace, of which a format may have several."""
    return str(element.tag).rpartition("}")[2]


def attribute(element: Element, name: str) -> str:
    """The value of an attribute of any namespace."""
    return next((str(value) for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")


def forget(element: Element) -> None:
    """Free what has been read: the element's content, and all before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def text_of(element: Element) -> str:
    """All text of an element, of which such parts as titles have little."""
    return "".join(element.itertext())


def _check(path: Path, noun: str) -> None:
    """Raises Unreadable for what does not begin and end as a zip file, and for a list of parts that is too long to be read."""
    with path.open("rb") as file:
        head = file.read(8)
        size = file.seek(0, 2)
        file.seek(max(0, size - (1 << 16) - 22))
        tail = file.read()
        if head == _CFB:
            file.seek(0)
            protected = any("EncryptedPackage".encode("utf-16-le") in block for block in iter(lambda: file.read(1 << 20), b""))
            if protected:
                raise Unreadable(f"{path} is protected by a password. Save it without one.")
    if not head.startswith(b"PK"):
        known = next((name for magic, name in _KNOWN.items() if head.lstrip().startswith(magic)), "")
        content = known or (f"it begins with {head[:4]!r}" if size else "it is empty")
        raise Unreadable(f"{path} is not {noun}: {content}. Name it as what it is, or save it as what it is named.")
    place = tail.rfind(b"PK\5\6")
    if place < 0:
        raise Unreadable(f"{path} is not {noun} that can be read: its end is missing. Fetch it again.")
    if _list_size(path, tail, place) > _MOST_NAMES:
        raise Unreadable(f"{path} is refused: it is said to hold more parts than such files do. Leave it out.")


def _list_size(path: Path, tail: bytes, place: int) -> int:
    """Bytes of the list of parts, by the record at the file's end, or the larger one that it leads to (zip64)."""
    size = int.from_bytes(tail[place + 12 : place + 16], "little")
    if size == 0xFFFFFFFF and tail[max(0, place - 20) : place].startswith(b"PK\6\7"):
        with path.open("rb") as file:
            file.seek(min(int.from_bytes(tail[place - 12 : place - 4], "little"), path.stat().st_size) + 40)
            size = int.from_bytes(file.read(8), "little")
    return size
