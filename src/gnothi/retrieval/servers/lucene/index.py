"""An index of passages on a server: where it is, what its fields are called, how long to wait; what a search asks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from gnothi.errors import InvalidSetting
from gnothi.retrieval.filters import Filter, Filters
from gnothi.retrieval.servers.questions import By, Distance, check_encoder
from gnothi.retrieval.servers.settings import check_address, check_waits, described, without_user
from gnothi.retrieval.terms import key_term

Engine = Literal["elasticsearch", "opensearch"]
TITLES: Mapping[Engine, str] = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}
ORIGIN, METADATA, TERMS = "gnothi_origin", "gnothi_metadata", "gnothi_terms"
OWN_ID = "_id"
MOST = 10_000
"""Hits of one search: index.max_result_window as it is unless somebody changes it."""


@dataclass(frozen=True, slots=True)
class Index:
    """``server`` is an address (``https://host:9200``), ``index`` an index, an alias or a pattern. Fields are named with dots
    (``body.content``). ``words`` is the field that is searched; empty: title and text. ``id`` is a field of keywords or
    numbers, or ``_id``. ``vectors`` is a field of vectors that ``encoder`` made, ``distance`` how it compares them. ``secret``
    names the environment variable with the password of ``user``, or with an API key. ``certificates`` is a file of those who
    sign the server's. ``partial``: the passages of the shards that answer are the result, and it is said that some did not.
    ``prefix`` is put before ids. Times are in seconds."""

    server: str
    index: str = "passages"
    id: str = "id"
    title: str = "title"
    text: str = "text"
    words: str = "gnothi_words"
    by: By = "words"
    vectors: str = "gnothi_vector"
    encoder: str = ""
    distance: Distance = "inner"
    prefix: str = ""
    user: str = ""
    secret: str = ""
    certificates: str = ""
    timeout: float = 30.0
    patience: float = 120.0
    connections: int = 4
    partial: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        check_waits(self)
        check_encoder(self)
        for name in ("index", "id", "text"):
            if not getattr(self, name).strip():
                raise InvalidSetting(f"{name} of an index: got {getattr(self, name)!r}, expected a name.")
        check_address(
            self.server,
            "http or https, a host, and after it the name of the index: https://HOST:PORT/NAME",
            'that a file names: user = "..." and secret = "VARIABLE", or ELASTICSEARCH_PASSWORD, OPENSEARCH_PASSWORD',
        )

    @property
    def name(self) -> str:
        """For messages: without the user."""
        return f"{self.address.partition('://')[2]} index {self.index}"

    @property
    def address(self) -> str:
        """Without the user."""
        return without_user(self.server)

    def path(self, ending: str, beside: str = "") -> str:
        """Of a request about the index, or about what stands beside it."""
        return f"/{quote(self.index + beside, safe='*,')}/{ending}"

    def credentials(self, engine: Engine) -> tuple[str, str]:
        """User and password, or nobody and an API key, or nobody and nothing. Raises InvalidSetting where the environment
        variable that should hold the secret is not set."""
        user = self.user or urlsplit(self.server).username or ""
        usual = f"{engine.upper()}_{'PASSWORD' if user else 'API_KEY'}"
        secret = os.environ.get(self.secret or usual, "")
        if not secret and (user or self.secret):
            raise InvalidSetting(
                f"{self.name} wants a secret: set the environment variable {self.secret or usual} to "
                f"{f'the password of {user}' if user else 'the API key'}."
            )
        if secret and not user and engine == "opensearch":
            raise InvalidSetting(f"{self.name}: OpenSearch takes no API keys: give a user and the password's variable.")
        return user, secret

    @property
    def searched(self) -> list[str]:
        """Fields that hold the words."""
        return [self.words] if self.words else [name for name in (self.title, self.text) if name]

    @property
    def shown(self) -> list[str]:
        """Fields that make a passage."""
        return [name for name in (self.id, self.title, self.text) if name and name != OWN_ID]

    def by_words(self, query: str, k: int, filters: Filters = ()) -> tuple[dict[str, str], dict[str, Any]]:
        """Parameters and body. Any word may match; nothing in the query is an operator. Rare words are counted over all shards
        (dfs), and equal queries go to equal copies, so that a ranking depends neither on shards nor on chance."""
        match = {"query": query, "operator": "or"}
        found = (
            {"match": {self.words: match}}
            if self.words
            else {"multi_match": {**match, "fields": self.searched, "type": "cross_fields"}}
        )
        ties: list[dict[str, str]] = [] if self.id == OWN_ID else [{self.id: "asc"}]
        parameters = {"search_type": "dfs_query_then_fetch", **self.parameters(query)}
        return parameters, {
            "query": {"bool": {"must": [found], "filter": clauses(filters)}} if filters else found,
            "track_scores": True,
            "sort": [{"_score": "desc"}, *ties],
            **self.wanted(k),
        }

    def parameters(self, asked: str) -> dict[str, str]:
        """Of any search."""
        return {
            "allow_partial_search_results": "true" if self.partial else "false",
            "preference": blake2b(asked.encode(), digest_size=8).hexdigest(),
        }

    def wanted(self, k: int) -> dict[str, Any]:
        """What comes of ``k`` hits, and how many there are to count."""
        return {
            "size": k,
            "track_total_hits": k + 1,
            "timeout": f"{max(1, round(self.timeout * 1000))}ms",
            "_source": [*self.shown, METADATA],
        }


def clauses(filters: Filters) -> list[dict[str, Any]]:
    """Filters as queries that score nothing."""
    return [_clause(one) for one in filters]


def _clause(one: Filter) -> dict[str, Any]:
    exact = [low for low, high in one.spans if low == high]
    some: list[dict[str, Any]] = [{"terms": {TERMS: exact}}] if exact else []
    some += [{"range": {TERMS: {"gte": low, "lte": high}}} for low, high in one.spans if low != high]
    if one.negated:
        return {"bool": {"filter": [{"term": {TERMS: key_term(one.key)}}], "must_not": some}}
    return {"bool": {"should": some, "minimum_should_match": 1}}


def as_settings(argument: str) -> dict[str, Any]:
    """URL or URL/NAME as settings."""
    server, _, name = argument.rstrip("/").rpartition("/")
    if server.endswith("/") or not server:  # the two of https://
        return {"server": argument}
    return {"server": server, "index": name}


def indices(argument: str, engine: Engine) -> list[Index]:
    """What ``ENGINE:ARGUMENT`` names, one index for each server. Raises InvalidSetting, InvalidInput, UnknownName."""
    return described(Index, argument, engine, as_settings)
