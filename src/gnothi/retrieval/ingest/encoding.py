"""From bytes to text: byte order marks, UTF-8, a declared encoding, and a reported fallback. Tells binary files apart."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gnothi.retrieval.ingest.base import Unreadable

_HEAD = 8192
_CHUNK = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FALLBACK = "windows-1252"
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))


@dataclass(frozen=True, slots=True)
class Encoding:
    """``notice`` is for the user, empty where the encoding was certain."""

    name: str
    notice: str = ""


def check_text(path: Path) -> bytes:
    """The beginning of the file. Raises Unreadable when it is binary: a zero byte, or more than 1 in 20 control characters."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}. Check that it exists and its permissions.") from None
    if any(head.startswith(mark) for mark, _ in _MARKS):
        return head
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head or controls * 20 > len(head):
        raise Unreadable(f"{path} is a binary file, expected text. Remove it or convert it to text.")
    return head


def detect(path: Path, declared: str | None = None) -> Encoding:
    """The encoding of a text file, by a mark, by being valid UTF-8, as declared, or windows-1252 with a notice.

    Reads the file once. A file that is UTF-8 but for a few broken bytes stays UTF-8. Raises Unreadable for a binary file.
    """
    head = check_text(path)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name)
    broken, multibyte = _utf8_damage(path)
    if not broken:
        return Encoding("utf-8")
    if declared and (known := _known(declared)) and known != "utf-8":
        return Encoding(known)
    if multibyte > broken:
        return Encoding("utf-8", f"is not valid UTF-8: {broken} broken characters were replaced")
    return Encoding(_FALLBACK, f"is not UTF-8: read as {_FALLBACK}. Convert it to UTF-8 if letters look wrong")


def chunks(path: Path, encoding: str) -> Iterator[tuple[str, int]]:
    """Decoded text in pieces of at most 64 KiB of the file, each with the number of bytes read so far; newlines are ``\\n``."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    read = 0
    held = ""  # a carriage return at the end of a piece, which may be half of a line end
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            read += len(data)
            text = held + decoder.decode(data)
            held = "\r" if text.endswith("\r") else ""
            yield text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n"), read
    yield (held + decoder.decode(b"", final=True)).replace("\r", "\n"), read


def _utf8_damage(path: Path) -> tuple[int, int]:
    """Number of broken and of intact multi-byte characters."""
    broken = multibyte = 0
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    with path.open("rb") as file:
        while True:
            data = file.read(_CHUNK)
            text = decoder.decode(data, final=not data)
            if not text.isascii():
                bad = sum("\udc80" <= character <= "\udcff" for character in text)
                broken += bad
                multibyte += sum(character > "\x7f" for character in text) - bad
            if not data:
                return broken, multibyte


def _known(name: str) -> str | None:
    try:
        return codecs.lookup(name.strip()).name
    except LookupError:
        return None
