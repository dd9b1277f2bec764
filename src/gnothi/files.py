"""Files of folders that others may have made: only what ends is read."""

from __future__ import annotations

import difflib
import errno
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnothi.errors import MALFORMED, InvalidInput, malformation

TOML_ERRORS = (ValueError, RecursionError)
"""What reading a file that is no TOML, or no text, raises; numbers too long and nesting too deep included."""

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What reading a file of SQLite raises: over damage SQLite may repeat bytes of the file, which Python cannot read as text."""


def regular(path: Path) -> Path:
    """``path``, unless it is a pipe, a socket or a device, which would be waited for or never end: OSError. Whether it is there
    at all is for the caller to find."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return path
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, and a file was expected", str(path))
    return path


def all_regular(folder: Path) -> None:
    """``regular`` for everything that lies in the folder itself."""
    for name in os.listdir(folder):
        regular(folder / name)


@contextmanager
def made_by(command: str, path: Path, content: str, *also: type[Exception]) -> Iterator[None]:
    """While the folder ``path`` is read, which ``command`` makes: InvalidInput where a file is missing or not as the command
    writes it. Reading may raise ``also``."""
    try:
        yield
    except OSError as error:
        name = Path(str(error.filename)).name
        raise InvalidInput(f"{path} holds no {content}: cannot read {name}. Make one with `{command}`.") from None
    except MALFORMED + also as error:
        problem = f"{path} cannot be used: {malformation(error)}"
        raise InvalidInput(f"{problem}. Expected a folder made by `{command}`: make it again.") from error


def check_format(document: Mapping[str, Any], expected: object) -> None:
    """Raises ValueError for a document of another format."""
    if document["format"] != expected:
        raise ValueError(f"format {document['format']}, this version reads {expected}")


def nearest(path: str | os.PathLike[str], also: Iterable[str] = ()) -> str:
    """``Did you mean ...? `` for the nearest name beside a path that is not there, or ``also``; nothing where none is near."""
    typed = os.fspath(path)
    folder, name = os.path.split(typed.rstrip(os.sep))
    try:
        beside = [os.path.join(folder, one) for one in os.listdir(home_expanded(folder or ".")) if one != name]
    except OSError:
        beside = []
    close = difflib.get_close_matches(os.path.join(folder, name), [*also, *beside], n=1, cutoff=0.75)
    return f"Did you mean {close[0]!r}? " if close else ""


def utf8(path: Path) -> str:
    """For a library that writes paths as UTF-8 itself, whatever the locale says of names (``C`` says ASCII)."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def home_expanded(path: str | os.PathLike[str]) -> Path:
    """``path``, whose leading ``~`` is a home folder; of a user who is not there it stays as it is, and so names nothing."""
    return Path(os.path.expanduser(path))
