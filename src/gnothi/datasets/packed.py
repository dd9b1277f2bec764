"""Files of questions as bytes: packed with gz or not, in UTF-8 or, with a mark, in UTF-16 and UTF-32 as spreadsheets and
PowerShell write them."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gnothi.errors import InvalidInput

PACKED = ".gz"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16's, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def bare_name(path: Path) -> str:
    """The file's name in small letters, without .gz: what says which format it has."""
    return path.name.lower().removesuffix(PACKED)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file in UTF-8, unpacked as it is read where its name ends in .gz. Raises OSError, or InvalidInput for a damaged gz
    file and for a mark of UTF-16 or UTF-32 that other bytes follow."""
    try:
        with path.open("rb") as raw:
            file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if path.suffix.lower() == PACKED else raw
            head = file.read(4)
            encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
            file.seek(0)
            yield file if encoding is None else io.BytesIO(file.read().decode(encoding).encode())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(
            f"{path} is not a complete gz file: {error}. Expected a file of questions; fetch it again."
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: got bytes that are not the {error.encoding} that its mark promises. Save the file in UTF-8."
        ) from None
