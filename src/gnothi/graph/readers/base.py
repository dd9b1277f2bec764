"""What every reader of triples gives: a parser of lines. Every line is a place where reading can go on after a kill."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, cast

from gnothi.retrieval.ingest.base import Checkpoint, Unreadable
from gnothi.retrieval.ingest.encoding import check_text
from gnothi.retrieval.ingest.lines import LONGEST_LINE

LONGEST_NAME = 1000
LABEL = ""  # as the relation of a triple: the tail is the name by which the head is known


class Triple(NamedTuple):
    """A line's fact. Of facts at a hub those of larger ``weight`` come first. A ``head`` or ``tail`` that is an IRI stands in
    angle brackets and gets a name when the graph is put together."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0


class Malformed(Exception):
    """A line that is not what its format asks for; the message says why, for the user."""


class Parser(Protocol):
    """Reads the lines of one file."""

    @property
    def header(self) -> bool:
        """Whether the first line names the columns and holds no triple."""
        ...

    def parse(self, line: str) -> Triple | None:
        """The triple of a line, None for one that is to be left out. Raises Malformed."""
        ...


class Line(NamedTuple):
    """``text`` is None where ``problem`` says why the line cannot be read. ``offset`` is the place after it in the (unpacked)
    file, ``read`` the bytes of the file read so far."""

    text: str | None
    problem: str
    number: int
    offset: int
    read: int


def name(text: str, what: str) -> str:
    """A node's or relation's name as it is kept: white space collapsed. Raises Malformed for one that is empty or too long."""
    kept = " ".join(text.split())
    if not kept:
        raise Malformed(f"its {what} is empty")
    if len(kept) > LONGEST_NAME:
        raise Malformed(f"its {what} has {len(kept)} characters, expected at most {LONGEST_NAME}")
    return kept


def number(value: object) -> float:
    """A weight. Raises Malformed for anything but a finite number."""
    try:
        weight = float(value)  # type: ignore[arg-type]  # whatever is no number is told below
    except (TypeError, ValueError):
        weight = float("nan")
    if isinstance(value, bool) or not abs(weight) < float("inf"):
        raise Malformed(f"its weight is {value!r}, expected a finite number")
    return weight


def lines(path: Path, start: Checkpoint) -> Iterator[Line]:
    """Every line from ``start`` that is not blank; gz is unpacked. Raises Unreadable for a file that is no text or damaged."""
    packed = path.suffix.lower() == ".gz"
    if not packed:
        check_text(path)
    with path.open("rb") as raw:
        # GzipFile has readline and seek as a file has; to seek it unpacks what is before.
        file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
        try:
            yield from _lines(file, raw, start)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Unreadable(f"{path} is not a complete gz file: {error}. Fetch it again.") from None


def _lines(file: BinaryIO, raw: BinaryIO, start: Checkpoint) -> Iterator[Line]:
    file.seek(start.offset)
    offset, count = start.offset, start.line
    while data := file.readline(LONGEST_LINE):
        count += 1
        offset += len(data)
        problem = ""
        if len(data) == LONGEST_LINE and not data.endswith(b"\n"):
            problem = f"longer than {LONGEST_LINE >> 20} MiB"
            while rest := file.readline(LONGEST_LINE):
                offset += len(rest)
                if rest.endswith(b"\n"):
                    break
        read = offset if file is raw else raw.tell()
        if problem:
            yield Line(None, problem, count, offset, read)
            continue
        if count == 1:
            data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            yield Line(None, f"not UTF-8 (byte {error.start + 1} of the line)", count, offset, read)
            continue
        if text := text.rstrip("\r\n"):
            yield Line(text, "", count, offset, read)
