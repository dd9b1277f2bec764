"""Files of one record a line: where each line ends, so that reading can go on there; bounded, whatever the line.

A file whose name ends in .gz is unpacked.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from gnothi.retrieval.ingest.base import Checkpoint, Step, Unreadable, record_step
from gnothi.retrieval.ingest.encoding import check_text
from gnothi.types import Passage

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


def record_steps(found: Iterable[Line], words: int, passage: Callable[[Line, str], Passage]) -> Iterator[Step]:
    """A step for each line. ``passage`` makes a passage of it and its text, and raises ValueError that says what is wrong."""
    for line in found:
        try:
            if line.text is None:
                raise ValueError(line.problem)
            record = passage(line, line.text)
        except ValueError as error:
            yield Step(checkpoint=line.checkpoint, invalid=str(error), read=line.read)
        else:
            yield record_step(record, words, line.checkpoint)


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
