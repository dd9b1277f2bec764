"""JSON files that are an array of records, or an object that holds one array of them; read in pieces."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections import deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from gnothi.retrieval.ingest.base import START, Checkpoint, NoDocument, Step, Unreadable
from gnothi.retrieval.ingest.corpora import AS_FOUND, Keys, ReadRecord, steps
from gnothi.retrieval.ingest.encoding import check_text, chunks, detect

_SPACE = re.compile(r"[ \t\n\r]*")


def read(path: Path, key: str, words: int, start: Checkpoint, keys: Keys = AS_FOUND) -> Iterator[Step]:  # noqa: ARG001
    """A record without an id gets ``key#number``. Raises NoDocument where there are no records, Unreadable for broken JSON."""
    records = _records(path)
    first = next(records, None)
    if first is None:
        raise NoDocument(f"{path} holds no array of records. Expected [{{...}}, ...] or one object with such an array.")
    yield from steps(path, chain([first], records), first.record, key, words, keys)


def _records(path: Path) -> Iterator[ReadRecord]:
    text = _Text(path)
    try:
        if not _array_begins(text):
            return
        for number, record in enumerate(_values(text), start=1):
            if number == 1 and not isinstance(record, dict):
                return
            yield ReadRecord(record, number, read=text.read)
    except RecursionError:
        raise Unreadable(f"{path} is not valid JSON: too many nested brackets. Leave it out.") from None
    except ValueError as error:
        raise Unreadable(f"{path} is not valid JSON: {error}. Repair it, or leave it out.") from None


def _array_begins(text: _Text) -> bool:
    """Goes into the file's array, or the first one of objects that its object holds, if there is one."""
    if text.skips("["):
        return True
    if not text.skips("{"):
        return False
    while text.peek() not in ("}", ""):
        text.value()  # a key
        text.skips(":")
        if not text.skips("["):
            text.value()
        elif text.peek() == "{":
            return True
        else:
            deque(_values(text), maxlen=0)
        text.skips(",")
    return False


def _values(text: _Text) -> Iterator[Any]:
    """The rest of an array."""
    while not text.skips("]"):
        yield text.value()
        comma = text.skips(",")
        if not comma and text.peek() != "]":
            raise ValueError("an array that does not end" if not text.peek() else f"{text.peek()!r} where a comma should be")
        if text.peek() == "]" and comma:
            raise ValueError("a comma before the end of an array")


class _Text:
    """The file's text from a place on, in pieces. Raises ValueError for what is no JSON, and for a value over 16 MiB."""

    def __init__(self, path: Path) -> None:
        self._pieces = chunks(path, detect(path).name)
        self._held = ""
        self._at = 0
        self._decoder = json.JSONDecoder()
        self.read = 0

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            space = _SPACE.match(self._held, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more(1):
                return ""

    def skips(self, character: str) -> bool:
        """Whether this is the next character, and then goes on behind it."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """The JSON value that begins here."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
            except json.JSONDecodeError as error:
                length = len(self._held) - self._at
                if length > LONGEST_LINE:
                    raise ValueError(f"a value of more than {LONGEST_LINE >> 20} MiB") from None
                if not self._more(length):
                    raise ValueError(error.msg) from None
            else:
                if end < len(self._held) or not self._more(1):  # a number may go on
                    self._at = end
                    return value

    def _more(self, size: int) -> bool:
        """Adds so many characters at least, and drops those that were passed. False at the end of the file."""
        parts, added = [self._held[self._at :]], 0
        for piece, read in self._pieces:
            self.read = read
            parts.append(piece)
            added += len(piece)
            if added >= size:
                break
        self._held, self._at = "".join(parts), 0
        return added > 0


# JSON Lines: a record a line, in one of the shapes of ``corpora``.


def read_lines(path: Path, key: str, words: int, start: Checkpoint, keys: Keys = AS_FOUND) -> Iterator[Step]:
    """A line without an id gets ``key#line number``."""
    first = next((one.record for one in _lines_records(path, START) if not one.problem), None)
    yield from steps(path, _lines_records(path, start), first, key, words, keys)


def _lines_records(path: Path, start: Checkpoint) -> Iterator[ReadRecord]:
    for line in lines(path, start):
        record, problem = None, line.problem
        try:
            record = parse_json(line.text) if line.text is not None else None
        except ValueError as error:
            problem = str(error)
        yield ReadRecord(record, line.number, problem, line.checkpoint, line.read)


# Files of one record a line: where each line ends, so that reading can go on there; bounded, whatever the line; .gz unpacked.

LONGEST_LINE = 16 * 1024 * 1024


class Line(NamedTuple):
    """``text`` is None where ``problem`` says why the line cannot be read. ``offset`` is the place after it in the (unpacked)
    file, ``read`` the bytes of the file read so far."""

    text: str | None
    problem: str
    number: int
    offset: int
    read: int

    @property
    def checkpoint(self) -> Checkpoint:
        """After the line."""
        return Checkpoint(self.offset, self.number)


def lines(path: Path, start: Checkpoint) -> Iterator[Line]:
    """Every line from ``start`` that is not blank. Raises Unreadable for a file that is no text, damaged or out of reach."""
    packed = path.suffix.lower() == ".gz"
    if not packed and check_text(path).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable(f"{path} is UTF-16, expected UTF-8. Save it anew (iconv -f utf-16 -t utf-8).")
    try:
        with path.open("rb") as raw:
            # GzipFile has readline and seek as a file has; to seek it unpacks what is before.
            yield from _lines(cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw, raw, start)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Unreadable(f"{path} is not a complete gz file: {error}. Fetch it again.") from None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}. Check its permissions and the disk.") from None


def parse_json(text: str) -> Any:
    """What stands in a line of JSON. Raises ValueError that says to a user why there is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError):
        raise ValueError("not valid JSON (a number too long or too many nested brackets)") from None


def _lines(file: BinaryIO, raw: BinaryIO, start: Checkpoint) -> Iterator[Line]:
    file.seek(start.offset)
    offset, number = start.offset, start.line
    while data := file.readline(LONGEST_LINE):
        number += 1
        offset += len(data)
        text, problem = None, ""
        if len(data) == LONGEST_LINE and not data.endswith(b"\n"):
            problem = f"longer than {LONGEST_LINE >> 20} MiB"
            while not data.endswith(b"\n") and (data := file.readline(LONGEST_LINE)):
                offset += len(data)
        else:
            try:
                text = (data.removeprefix(codecs.BOM_UTF8) if number == 1 else data).decode().rstrip("\r\n")
            except UnicodeDecodeError as error:
                problem = f"not UTF-8 (byte {error.start + 1} of the line)"
        if problem or (text and not text.isspace()):
            yield Line(text, problem, number, offset, offset if file is raw else raw.tell())
