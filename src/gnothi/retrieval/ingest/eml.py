"""Mail: ``.eml``, and ``.mbox`` with many. Subject, sender, date, and the texts, of HTML where there is no plain one.

Attachments are named, not read: what a mail carries is rarely what its sender wrote. Forwarded mails are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email import policy
from email.message import MIMEPart
from email.parser import BytesParser
from email.utils import parseaddr
from pathlib import Path

from gnothi.errors import MALFORMED
from gnothi.retrieval.ingest.base import Block, Unreadable, day
from gnothi.retrieval.ingest.encoding import check_text, decoded, larger
from gnothi.retrieval.ingest.html import page_blocks
from gnothi.retrieval.ingest.outline import Outline

_MOST = 48 << 20  # bytes of one mail: it is parsed in memory
_HEAD = re.compile(rb".*?(?:\r?\n\r?\n|\Z)", re.DOTALL)
_ENCODED = re.compile(rb"(?<==\?)[\w.:-]+(?=(?:\*[\w-]+)?\?[bq]\?)", re.IGNORECASE)  # what a part of a header is encoded in
_NOT_ASCII = ("utf-7", "utf-16", "utf-32")
_FIELDS = (("From", "author"), ("To", ""), ("Date", ""))


def blocks(path: Path) -> Iterator[Block]:
    check_text(path)
    if path.suffix.lower() != ".mbox" and path.stat().st_size > _MOST:
        raise Unreadable(f"{path} is larger than {_MOST >> 20} MB, expected one mail. Save its attachments apart.")
    for number, (data, read) in enumerate(_mails(path), 1):
        if data is None:
            yield Block(path.stem, "", read, notice=f"holds a mail, number {number}, that is larger than {_MOST >> 20} MB")
            continue
        yield from _mail(BytesParser(policy=policy.default).parsebytes(_HEAD.sub(_readable, data, count=1)), path, read)


def _mails(path: Path) -> Iterator[tuple[bytes | None, int]]:
    """Each mail of the file, with the bytes read so far; None for one that is too large."""
    many = path.suffix.lower() == ".mbox"
    lines: list[bytes] = []
    size = read = 0
    blank = True
    with path.open("rb") as file:
        while line := file.readline(1 << 20):
            read += len(line)
            if many and blank and line.startswith(b"From "):
                if size:
                    yield (b"".join(lines) if size <= _MOST else None), read
                lines, size = [], 0
                continue
            blank = not line.strip()
            size += len(line)
            if size <= _MOST:
                lines.append(line)
    if size:
        yield (b"".join(lines) if size <= _MOST else None), read


def _mail(mail: MIMEPart, path: Path, read: int) -> Iterator[Block]:
    outline = Outline(path.stem, _header(mail, "Subject") or path.stem)
    headers = {name: _header(mail, name) for name, _ in _FIELDS}
    name, address = parseaddr(headers["From"])
    outline.describe(name or address, _day(mail))
    heads = "".join(f"{name}: {value}\n" for name, value in headers.items() if value)
    if heads:
        yield outline.block(heads + "\n", read)
    names = []
    said = False
    for part in _parts(mail):
        attached = " ".join((part.get_filename() or "").split())
        if part.get_content_maintype() == "message":
            for inner in part.iter_parts() if part.get_content_type() in ("message/rfc822", "message/global") else ():
                yield from _mail(inner, path, read)
        elif part.is_attachment() or (attached and said) or part.get_content_maintype() not in ("text", "multipart"):
            names += [attached] if attached else []
        elif (text := _content(part)).strip():
            said = True
            if part.get_content_subtype() == "html":
                page = Outline(outline.document, outline.document)
                page.metadata.update(outline.metadata)
                yield from page_blocks([(text, read)], page)
            else:
                yield outline.block(text + "\n\n", read)
    if names:
        yield outline.block(f"Attachments: {', '.join(names)}\n\n", read)
        yield Block(outline.title, "", read, notice=f"has attachments, which are not read: {', '.join(names)}")


def _parts(mail: MIMEPart) -> Iterator[MIMEPart]:
    """Those that hold something, in order. Of alternatives the first plain text that is not blank, else the first other text;
    and what is attached to any of them."""
    if not mail.is_multipart() or mail.get_content_maintype() != "multipart":
        yield mail
        return
    groups = [list(_parts(part)) for part in mail.iter_parts()]
    if mail.get_content_subtype() == "alternative":
        best = min(groups, key=lambda group: min(map(_rank, group), default=9), default=None)
        groups = [group if group is best else [part for part in group if _rank(part) == _NO_TEXT] for group in groups]
    for group in groups:
        yield from group


_NO_TEXT = 3


def _rank(part: MIMEPart) -> int:
    if part.get_content_maintype() != "text" or part.is_attachment():
        return _NO_TEXT
    return {"plain": 0, "html": 1}.get(part.get_content_subtype(), 2) if _content(part).strip() else _NO_TEXT


def _header(mail: MIMEPart, name: str) -> str:
    try:
        return " ".join(str(mail.get(name) or "").split())
    except MALFORMED:  # of headers that are not as the standard has them
        return ""


def _day(mail: MIMEPart) -> str:
    try:
        return day(getattr(mail.get("Date"), "datetime", None))
    except MALFORMED:
        return ""


def _readable(head: re.Match[bytes]) -> bytes:
    """The headers in UTF-8, where they are not encoded as the standard has it."""
    return _ENCODED.sub(lambda name: larger(name[0].decode()).encode(), decoded(head[0]).encode())


def _content(part: MIMEPart) -> str:
    with suppress(LookupError, *MALFORMED):  # an encoding that nobody knows
        data, declared = bytes(part.get_payload(decode=True) or b""), part.get_content_charset("")
        return data.decode(declared, "replace") if declared.startswith(_NOT_ASCII) else decoded(data, declared)
    return ""
