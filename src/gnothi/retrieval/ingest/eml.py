"""Mail: ``.eml``, and ``.mbox`` with many. Subject, sender, date, and the text, of HTML where there is no plain one.

Attachments are named, not read: what a mail carries is rarely what its sender wrote. Forwarded mails are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from email import policy
from email.message import MIMEPart
from email.parser import BytesParser
from email.utils import parseaddr
from pathlib import Path

from gnothi.errors import MALFORMED
from gnothi.retrieval.ingest.base import Block, Unreadable, day
from gnothi.retrieval.ingest.encoding import check_text
from gnothi.retrieval.ingest.html import page_blocks
from gnothi.retrieval.ingest.outline import Outline

_MOST = 48 << 20  # bytes of one mail: it is parsed in memory
_FIELDS = (("From", "author"), ("To", ""), ("Date", ""))


def blocks(path: Path) -> Iterator[Block]:
    check_text(path)
    if path.suffix.lower() != ".mbox" and path.stat().st_size > _MOST:
        raise Unreadable(f"{path} is larger than {_MOST >> 20} MB, expected one mail. Save its attachments apart.")
    for number, (data, read) in enumerate(_mails(path), 1):
        if data is None:
            yield Block(path.stem, "", read, notice=f"holds a mail, number {number}, that is larger than {_MOST >> 20} MB")
            continue
        yield from _mail(BytesParser(policy=policy.default).parsebytes(data), path, read)


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
    body = mail.get_body(("plain", "html"))
    if body is not None:
        text = _content(body)
        if body.get_content_subtype() == "html":
            yield from page_blocks([(text, read)], Outline(outline.document, outline.document))
        else:
            yield outline.block(text + "\n\n", read)
    names = []
    for part in mail.iter_attachments() if mail.is_multipart() else ():
        if part.get_content_type() == "message/rfc822":
            for inner in part.iter_parts():
                yield from _mail(inner, path, read)
        elif attached := part.get_filename():
            names.append(" ".join(attached.split()))
    if names:
        yield outline.block(f"Attachments: {', '.join(names)}\n\n", read)
        yield Block(outline.title, "", read, notice=f"has attachments, which are not read: {', '.join(names)}")


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


def _content(part: MIMEPart) -> str:
    try:
        content = part.get_content()
    except (LookupError, *MALFORMED):  # an encoding that nobody knows
        content = part.get_payload(decode=True)
    return content if isinstance(content, str) else bytes(content or b"").decode("utf-8", "replace")
