"""A SearXNG server as an index: its results as passages, in its order, or the best pieces of the pages behind them."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from gnothi.concurrency import gather
from gnothi.errors import MALFORMED, IndexUnavailable, InvalidSetting
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.ingest import html
from gnothi.retrieval.ingest.base import Unreadable, document_steps
from gnothi.retrieval.ingest.split import DEFAULT_WORDS
from gnothi.retrieval.results import check_k
from gnothi.retrieval.servers.patience import Passing, Patience, Unreached
from gnothi.retrieval.servers.searching import Waits, check_address, described, without_user
from gnothi.retrieval.servers.web import Allowed, Unconnected, Unfetched, anywhere, fetch, is_public
from gnothi.retrying import asked_to_wait, worth_another_try
from gnothi.types import Passage, ScoredPassage, encodable

# The page that a result leads to, as passages.

_PAGE_BYTES = 2 << 20
_TYPES = ("text/html", "application/xhtml+xml")


def pieces(url: str, seconds: float, allowed: Allowed) -> list[Passage]:
    """``url#1``, ``url#2`` ...; none where the page is not to be had, or no HTML."""
    try:
        response = fetch(url, allowed=allowed, most=_PAGE_BYTES, seconds=seconds, headers={"Accept": ", ".join(_TYPES)})
    except Unfetched:
        return []
    kind = Message()
    kind["Content-Type"] = response.headers.get("content-type", "")
    if (
        response.status != 200
        or kind.get_content_type() not in _TYPES
        or response.headers.get("content-encoding", "identity") != "identity"
    ):
        return []
    body = response.body
    if charset := kind.get_content_charset():
        with suppress(LookupError, ValueError):  # a name that nobody knows: the page's own declaration, or a guess
            body = body.decode(charset, "replace").encode()
    with tempfile.TemporaryDirectory(prefix="gnothi-page-") as folder:
        file = Path(folder) / "page.html"
        file.write_bytes(body)
        try:
            steps = [*document_steps(html.blocks(file), url, DEFAULT_WORDS)]
        except Unreadable:
            return []
    return [replace(one, title=one.title.removeprefix("page > ")) for step in steps for one in step.passages]


# Where a SearXNG server is and how it is asked.

PASSWORD = "SEARXNG_PASSWORD"


@dataclass(frozen=True)
class Server(Waits):
    """``server`` is an address (``http://localhost:8080``), with a user where a proxy before it wants one, whose password is in
    the environment variable SEARXNG_PASSWORD. ``language`` (a code), ``categories``, ``engines`` and ``time_range`` are
    SearXNG's own parameters, empty for the server's defaults. ``pages``: the pages that the first results lead to
    are read, too. Times are in seconds."""

    server: str
    language: str = ""
    categories: str = ""
    engines: str = ""
    time_range: str = ""
    pages: bool = False
    timeout: float = field(default=15.0, kw_only=True)
    patience: float = field(default=60.0, kw_only=True)

    def __post_init__(self) -> None:
        self.check_waits()
        check_address(self.server, "one of the form http://HOST:PORT", PASSWORD)

    @property
    def address(self) -> str:
        """Without the user."""
        return without_user(self.server).removesuffix("/search")

    @property
    def name(self) -> str:
        return f"searxng:{self.address}"

    @property
    def parameters(self) -> dict[str, str]:
        """Of every search."""
        chosen = {name: getattr(self, name) for name in ("language", "categories", "engines", "time_range")}
        return {"format": "json"} | {name: value for name, value in chosen.items() if value}

    def headers(self) -> dict[str, str]:
        """Raises InvalidSetting where a user is named and the password is not set."""
        user = urlsplit(self.server).username
        if not user:
            return {}
        if not (password := os.environ.get(PASSWORD, "")):
            raise InvalidSetting(f"{self.name} wants a password: set the environment variable {PASSWORD} to that of {user}.")
        return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def server(argument: str) -> Server:
    """Of an address, perhaps with settings behind a question mark, or of a TOML file. Raises InvalidInput, UnknownName and
    InvalidSetting."""
    servers = described(Server, argument, "searxng", _address)
    if len(servers) > 1:
        raise InvalidSetting(f"index searxng:{argument}: got {len(servers)} servers, expected one.")
    return servers[0]


def _address(argument: str) -> Mapping[str, Any]:
    address, _, settings = argument.partition("?")
    return {"server": address, **dict(parse_qsl(settings, keep_blank_values=True))}


_LONGEST_QUERY = 500
"""Characters: what engines take, and a line of HTTP."""
_MOST_BYTES = 8 << 20
_MOST_PAGES = 5
"""Of results, some twenty on each."""
PAGES_READ = 5
"""Of those that results lead to, whatever is wanted of them, so that fewer passages are the first of more."""


class Searxng:
    """A Retriever. Used in one event loop."""

    def __init__(self, server: Server, allowed: Allowed = is_public) -> None:
        """``allowed`` says to which addresses the pages of results may lead. Raises InvalidSetting without the password that is
        needed."""
        self._server = server
        self._headers = server.headers()
        self._allowed = allowed
        self._patience = Patience(server.patience, server.name, known=False)
        self._room = asyncio.Semaphore(server.connections)

    @property
    def name(self) -> str:
        return self._server.name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        """Raises IndexUnavailable."""
        check_k(k)
        words = " ".join(encodable(query).split())[:_LONGEST_QUERY].strip()
        if not words or k == 0:
            return ()
        if self._server.pages:
            return await self._read(words, (await self._results(words, 1))[:PAGES_READ], k)
        return tuple(ScoredPassage(one, 1 / rank) for rank, one in enumerate((await self._results(words, k))[:k], 1))

    async def aclose(self) -> None:
        """Each request has a connection of its own."""

    async def _results(self, query: str, k: int) -> list[Passage]:
        results: dict[str, Passage] = {}
        for number in range(1, _MOST_PAGES + 1):
            page = await self._patience.persist(lambda number=number: self._try(query, number))  # type: ignore[misc]
            new = {one.id: one for one in page if one.id not in results}
            results |= new
            if len(results) >= k or not new:
                break
        return [*results.values()]

    async def _try(self, query: str, number: int) -> list[Passage]:
        parameters = self._server.parameters | {"q": query, "pageno": str(number)}
        url = f"{self._server.address}/search?{urlencode(parameters, errors='replace')}"
        async with self._room:
            self._patience.check()
            try:
                response = await asyncio.to_thread(
                    fetch,
                    url,
                    allowed=anywhere,
                    most=_MOST_BYTES,
                    seconds=self._server.timeout,
                    headers=self._headers,
                    redirects=0,
                )
            except Unfetched as error:
                raise (Unreached if isinstance(error, Unconnected) else Passing)(str(error)) from None
        if response.status != 200:
            raise self._refusal(response.status, response.headers)
        try:
            return _passages(json.loads(response.body), first=number == 1)
        except MALFORMED:
            raise IndexUnavailable(
                f"{self.name} did not answer in SearXNG's JSON. Expected the address of a SearXNG server, as "
                "searxng:http://localhost:8080."
            ) from None

    def _refusal(self, status: int, headers: Mapping[str, str]) -> Exception:
        if worth_another_try(status):
            return Passing(f"status {status}", asked_to_wait(headers))
        advice = "Look at its address."
        if status == 403:
            advice = (
                "It gives no JSON until its settings.yml allows it: add json to formats under search, and restart it. Or its "
                "limiter keeps programs out (server.limiter)."
            )
        elif status == 401:
            advice = "Name a user in its address, and set the environment variable SEARXNG_PASSWORD."
        elif 300 <= status < 400:
            advice = f"It sends us on to {headers.get('location', 'another address')!r:.200}: name that one."
        return IndexUnavailable(f"{self.name} says {status}. {advice}")

    async def _read(self, query: str, results: Sequence[Passage], k: int) -> tuple[ScoredPassage, ...]:
        """The pieces that fit the query best, of all pages; of a page that is not to be had, its result's text."""
        read = await gather(*(self._page(one) for one in results))
        pieces = [piece for page in read for piece in page]
        best = await asyncio.to_thread(lambda: BM25Index.in_memory(pieces, self.name).search_blocking(query, k))
        return best or tuple(ScoredPassage(one, 1 / rank) for rank, one in enumerate(results[:k], 1))

    async def _page(self, result: Passage) -> list[Passage]:
        async with self._room:
            got = await asyncio.to_thread(pieces, result.id, self._server.timeout, self._allowed)
        return got or [result]


def _passages(answer: Any, first: bool) -> list[Passage]:
    """Raises what MALFORMED names, or Passing where engines failed and none found anything."""
    boxes = [(one.get("id"), one.get("infobox"), one.get("content")) for one in answer.get("infoboxes", ()) if first]
    rows = [(one.get("url"), one.get("title"), one.get("content")) for one in answer["results"]]
    passages = [Passage(url, text or "", title or "") for url, title, text in boxes + rows if url and (text or title)]
    if not all(isinstance(part, str) for one in passages for part in (one.id, one.text, one.title)):
        raise ValueError("texts expected")
    if not passages and (silent := answer.get("unresponsive_engines")):
        raise Passing(f"no engine behind it answered: {', '.join(' '.join(map(str, one)) for one in silent):.200}")
    return passages


def opened(argument: str) -> Searxng:
    """Raises as ``server``."""
    return Searxng(server(argument))
