"""What a SearXNG server finds on the web."""

from __future__ import annotations

from gnothi.protocols import Retriever
from gnothi.schemes import Scheme


def _open(argument: str) -> Retriever:
    from gnothi.retrieval.servers.searxng.search import Searxng
    from gnothi.retrieval.servers.searxng.server import server

    return Searxng(server(argument))


SCHEME = Scheme(open=_open, summary="the web, by a SearXNG server: searxng:http://HOST:PORT, or searxng:FILE.toml")
