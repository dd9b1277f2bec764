"""Whether tantivy can open a folder's files: what it would wait for, or ask endless memory for and end the process, is refused,
and so is an index of other fields.

Of the files of passages, the largest, small ones are held against their checksums; of others only the ends are read, so that
opening takes no longer for a large index. A writer's threads end the process over damage that a reader is told of: before
writing the checksums of all other files are looked at, too.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from gnothi.errors import MALFORMED, malformation
from gnothi.files import all_regular
from gnothi.retrieval.analysis import ID, METADATA, ORIGIN, PAIRS, TERMS

_META = "meta.json"
_SEGMENT = re.compile(r"[0-9a-f]{32}")
_ALL = {ID: True, ORIGIN: True, METADATA: True, TERMS: False}
_STORED = [_ALL | {name: name == words for words, units in pairs for name in (words, units)} for pairs in PAIRS.values()]
"""Of each kind of ``Fields``."""
_FORMAT = 7
"""The layout of tantivy's files that is known here; of others tantivy itself has to tell."""
_END = struct.Struct("<II")  # how long the JSON before it is, and a mark
_MARK = 1337
_STORE = struct.Struct("<IQB15x")  # version of the store, where its table of blocks begins, compression
_STORE_VERSION = 2
_SUMMED = ("idx", "term", "pos", "fieldnorm", "fast")
_PIECE = 1 << 20
_SMALL = 32 << 20
"""Bytes of a file of passages that are looked at in some 20 ms."""
_LONGEST = 10
"""Bytes of a number of varying length."""


class Damaged(ValueError):
    """A file of an index that is not as tantivy wrote it."""


def check(folder: Path, writes: bool = False) -> None:
    """Raises ValueError or OSError for an index that must not be opened, or not be written to."""
    all_regular(folder)
    try:
        meta = json.loads((folder / _META).read_bytes())
        names = {_segment(segment): _deleted(segment) for segment in meta["segments"]}
        stored = {one["name"]: one["options"]["stored"] for one in meta["schema"]}
    except FileNotFoundError:
        return
    except MALFORMED as error:
        raise ValueError(f"{_META} is not what tantivy writes ({malformation(error)})") from None
    if stored not in _STORED:
        raise ValueError(f"{_META} tells of the fields {stored!r:.100}, expected {_STORED[0]}")
    for name, deleted in names.items():
        _check_store(folder / f"{name}.store")
        for kind in ("store", *_SUMMED, *deleted) if writes else ("store",):
            _check_sum(folder / f"{name}.{kind}")


def _segment(segment: Any) -> str:
    """How the names of its files begin. It is part of a path, so nothing but the digits of a UUID is taken."""
    name = str(segment["segment_id"]).replace("-", "")
    if not _SEGMENT.fullmatch(name):
        raise ValueError(f"{segment['segment_id']!r:.60} is no name of a segment, expected a UUID")
    return name


def _deleted(segment: Any) -> tuple[str, ...]:
    """How the name of the file ends that says which passages are deleted, where some are."""
    return (f"{int(segment['deletes']['opstamp'])}.del",) if segment.get("deletes") else ()


def _footer(file: BinaryIO) -> tuple[int, dict[str, Any]] | None:
    """How long the body of a file of tantivy's is, and what stands behind it; None where tantivy itself tells what is wrong."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END.size))
    length, mark = _END.unpack(file.read(_END.size))
    body = size - _END.size - length
    if mark != _MARK or body < 0:
        return None
    file.seek(body)
    footer: dict[str, Any] = json.loads(file.read(length))
    return (body, footer) if footer["version"]["index_format_version"] == _FORMAT else None


def _check_sum(path: Path) -> None:
    """Of what was committed: such a file is whole."""
    try:
        with path.open("rb") as file:
            if (parts := _footer(file)) is None:
                return
            remaining, footer = parts
            if path.suffix == ".store" and remaining > _SMALL:
                return
            file.seek(0)
            crc = 0
            while remaining and (piece := file.read(min(_PIECE, remaining))):
                crc, remaining = zlib.crc32(piece, crc), remaining - len(piece)
            sound = crc == footer["crc"]
    except (OSError, struct.error, *MALFORMED):
        return  # gone by now, or damage that tantivy tells
    if not sound:
        raise Damaged(f"{path.name} is damaged: its bytes do not have the checksum that it was written with")


def _check_store(path: Path) -> None:
    """The number of layers of the table of blocks: tantivy makes room for so many before it reads them."""
    try:
        with path.open("rb") as file:
            if (parts := _footer(file)) is None or parts[0] < _STORE.size:
                return
            body, _ = parts
            file.seek(body - _STORE.size)
            version, begin, _ = _STORE.unpack(file.read(_STORE.size))
            size = body - _STORE.size - begin
            if version != _STORE_VERSION or size < 0:
                return
            file.seek(begin)
            layers = _number(file.read(min(_LONGEST, size)))
    except (OSError, struct.error, *MALFORMED):
        return  # gone by now, or damage that tantivy tells
    if layers is None or layers > size:
        number = "no number of" if layers is None else f"{layers:,}"
        raise Damaged(f"{path.name} is damaged: its table of blocks has {number} layers in {size:,} bytes")


def _number(data: bytes) -> int | None:
    """Seven bits a byte, the least first; the last byte has its eighth bit set. None where there is no last byte: tantivy would
    go on to the next one, wherever that is."""
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << (7 * place)
        if byte & 0x80:
            return value
    return None
