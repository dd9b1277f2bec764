"""The page that a result leads to, as passages."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from email.message import Message
from pathlib import Path

from gnothi.retrieval.build import DEFAULT_WORDS
from gnothi.retrieval.ingest import html
from gnothi.retrieval.ingest.base import START, Unreadable
from gnothi.retrieval.servers.web import Allowed, Unfetched, fetch
from gnothi.types import Passage

_MOST_BYTES = 2 << 20
_TYPES = ("text/html", "application/xhtml+xml")


def pieces(url: str, seconds: float, allowed: Allowed) -> list[Passage]:
    """``url#1``, ``url#2`` ...; none where the page is not to be had, or no HTML."""
    try:
        found = fetch(url, allowed=allowed, most=_MOST_BYTES, seconds=seconds, headers={"Accept": ", ".join(_TYPES)})
    except Unfetched:
        return []
    kind = Message()
    kind["Content-Type"] = found.headers.get("content-type", "")
    if (
        found.status != 200
        or kind.get_content_type() not in _TYPES
        or found.headers.get("content-encoding", "identity") != "identity"
    ):
        return []
    body = found.body
    if charset := kind.get_content_charset():
        with suppress(LookupError, ValueError):  # a name that nobody knows: the page's own declaration, or a guess
            body = body.decode(charset, "replace").encode()
    with tempfile.TemporaryDirectory(prefix="gnothi-page-") as folder:
        file = Path(folder) / "page.html"
        file.write_bytes(body)
        try:
            steps = [*html.read(file, url, DEFAULT_WORDS, START)]
        except Unreadable:
            return []
    return [replace(one, title=one.title.removeprefix("page > ")) for step in steps for one in step.passages]
