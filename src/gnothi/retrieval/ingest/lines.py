"""Files of one record a line: where each line ends, so that reading can go on there; bounded, whatever the line."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import Checkpoint
from gnothi.retrieval.ingest.encoding import check_text

LONGEST_LINE = 16 * 1024 * 1024


def lines(path: Path, start: Checkpoint) -> Iterator[tuple[str | None, str, Checkpoint]]:
    """(text, problem, place after it) for each line from ``start`` that is not blank.

    The text is None where the problem says why. Raises Unreadable for a binary file.
    """
    check_text(path)
    with path.open("rb") as file:
        file.seek(start.offset)
        number = start.line
        while data := file.readline(LONGEST_LINE):
            number += 1
            problem = ""
            if len(data) == LONGEST_LINE and not data.endswith(b"\n"):
                problem = f"longer than {LONGEST_LINE >> 20} MiB"
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
            place = Checkpoint(file.tell(), number)
            if problem:
                yield None, problem, place
                continue
            if number == 1:
                data = data.removeprefix(codecs.BOM_UTF8)
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                yield None, f"not UTF-8 (byte {error.start + 1} of the line)", place
                continue
            if text.strip():
                yield text.rstrip("\r\n"), "", place
