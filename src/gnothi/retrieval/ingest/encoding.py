"""From bytes to text: byte order marks, UTF-8, a declared encoding, and a reported guess. Tells binary files apart."""

from __future__ import annotations

import codecs
import re
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
# For other letters than Latin ones: encodings of Latin letters are too much alike to tell them apart.
_CANDIDATES = ["cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
# As browsers read them: what pages and mails in them hold is mostly of the larger ones, which have all of their characters.
_LARGER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc_kr": "cp949",
}  # fmt: skip
_BY_ESCAPES = ("iso2022", "hz")  # which are ASCII to look at
_HIGH = re.compile(rb"[\x80-\xff]")
_WORD = re.compile(rb"[\x80-\xff]{3,}")
_ZEROS = re.compile(rb"\0.?\0", re.DOTALL)
_CONTROLS = bytes(set(range(1, 32)) - set(b"\t\n\r\f\b\x1b"))
_ASCII = bytes(range(32, 92)) + rb"\u0041" + bytes(range(93, 127))


@dataclass(frozen=True, slots=True)
class Encoding:
    """``notice`` is for the user, empty where the encoding was certain."""

    name: str
    notice: str = ""


def check_text(path: Path) -> bytes:
    """The beginning of the file. Raises Unreadable when it is binary: zero bytes side by side or with one
    byte between, or more than 1 in 20 control characters."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}. Check that it exists and its permissions.") from None
    if any(head.startswith(mark) for mark, _ in _MARKS):
        return head
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if _ZEROS.search(head) or controls * 20 > len(head):
        raise Unreadable(f"{path} is a binary file, expected text. Remove it or convert it to text.")
    return head


def detect(path: Path, declared: str | None = None, sample: int | None = None) -> Encoding:
    """The encoding of a text file, by a mark, by being valid UTF-8, as declared, or guessed with a notice.

    Reads the file once; one of more than ``sample`` bytes is UTF-8 unless it has a mark. A file of UTF-8 with a few broken
    bytes stays UTF-8. Raises Unreadable for a binary file.
    """
    head = check_text(path)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name)
    known = _known(declared) if declared else None
    if known and known.startswith(_BY_ESCAPES):
        return Encoding(known)
    if len(head) < _HEAD and _is_utf8(head):  # the whole file
        return Encoding("utf-8")
    if sample is not None and path.stat().st_size > sample:
        return Encoding("utf-8")
    broken, multibyte, where = _utf8_damage(path)
    if not broken:
        return Encoding("utf-8")
    if known:
        return Encoding(known)
    if multibyte > broken:
        return Encoding("utf-8", f"is not valid UTF-8: {broken} broken characters were replaced")
    guess = _guess(path, where)
    return Encoding(guess, f"is not UTF-8: read as {guess}. Convert it to UTF-8 if letters look wrong")


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


def _utf8_damage(path: Path) -> tuple[int, int, int]:
    """Number of broken and of intact multi-byte characters, and from where on the first broken one is found."""
    broken = multibyte = where = 0
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    with path.open("rb") as file:
        while True:
            data = file.read(_CHUNK)
            text = decoder.decode(data, final=not data)
            if not text.isascii():
                bad = len(text) - len(text.encode(errors="ignore").decode())
                if bad and not broken:
                    where = max(0, file.tell() - _CHUNK)
                broken += bad
                multibyte += len(text) - len(text.encode("ascii", "ignore")) - bad
            if not data:
                return broken, multibyte, where


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _known(declared: str) -> str | None:
    """The codec for a declared encoding. None for one that cannot be meant, as the declaration itself could be read as ASCII:
    UTF-16 without a mark, and codecs that only Python knows (rot13, hex, zlib, idna, UTF-7)."""
    declared = declared.lower().removeprefix("x-").replace("windows-", "cp")
    try:
        if _ASCII.decode(declared, "replace") != _ASCII.decode("ascii"):
            return None
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    # UTF-8 was tried before.
    return None if name in ("utf-8", "utf-8-sig") else _LARGER.get(name, name)


def larger(declared: str) -> str:
    """The encoding to read what is declared to be in another one by; itself where it is known for no larger one."""
    return _known(declared) or declared


def decoded(data: bytes, declared: str = "") -> str:
    """The text of a part of a file, by the same rules as ``detect`` has for a whole one."""
    known = _known(declared) if declared else None
    if known and known.startswith(_BY_ESCAPES):
        return data.decode(known, "replace")
    text = data.decode(errors="surrogateescape")
    broken = sum("\udc80" <= letter <= "\udcff" for letter in text)
    multibyte = len(text) - len(text.encode("ascii", "ignore")) - broken
    if not broken or (not known and multibyte > broken):
        return data.decode(errors="replace")
    return data.decode(known or _guessed(data), "replace")


def _guess(path: Path, where: int) -> str:
    """Windows-1252, unless the text from ``where`` on is clearly in one of the encodings for other letters."""
    with path.open("rb") as file:
        file.seek(where)
        data = file.read(_CHUNK)
    # Whole lines: a character cut in two would rule its encoding out.
    lines = data.splitlines(keepends=True)[where > 0 : -1 if len(data) == _CHUNK else None]
    return _guessed(b"".join(line for line in lines if not line.isascii()) or data)


def _guessed(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    if 2 * sum(map(len, _WORD.findall(sample))) <= len(_HIGH.findall(sample)):
        return _FALLBACK  # single letters with accents, a sign here and there
    guesses = [(match.encoding, match.chaos, match.coherence) for match in from_bytes(sample, cp_isolation=_CANDIDATES)]
    clear = guesses and (len(guesses) == 1 or guesses[0][1:] != guesses[1][1:])
    return guesses[0][0] if clear else _FALLBACK
