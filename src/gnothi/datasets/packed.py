"""Files of questions as bytes, packed with gz or not."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gnothi.errors import InvalidInput

PACKED = ".gz"


def bare_name(path: Path) -> str:
    """The file's name in small letters, without .gz: what says which format it has."""
    return path.name.lower().removesuffix(PACKED)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file, unpacked as it is read where its name ends in .gz. Raises OSError, or InvalidInput for a damaged gz file."""
    try:
        with path.open("rb") as raw:
            yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if path.suffix.lower() == PACKED else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(
            f"{path} is not a complete gz file: {error}. Expected a file of questions; fetch it again."
        ) from None
