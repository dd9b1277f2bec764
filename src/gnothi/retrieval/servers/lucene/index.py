"""An index of passages on a server: where it is, what its fields are called, how long to wait; what a search asks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from gnothi.errors import MALFORMED, IndexUnavailable, InvalidSetting
from gnothi.retrieval.analysis import unpacked
from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.filters import Filter, Filters
from gnothi.retrieval.servers.patience import Passing
from gnothi.retrieval.servers.searching import By, Distance, check_encoder
from gnothi.retrieval.servers.settings import check_address, check_waits, described, without_user
from gnothi.retrieval.terms import key_term
from gnothi.types import Passage, ScoredPassage

Engine = Literal["elasticsearch", "opensearch"]
TITLES: Mapping[Engine, str] = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}
ORIGIN, METADATA, TERMS = "gnothi_origin", "gnothi_metadata", "gnothi_terms"
OWN_ID = "_id"
MOST = 10_000
"""Hits of one search: index.max_result_window as it is unless somebody changes it."""

Fields = Literal["cross", "best"]
_FIELDS: Mapping[Fields, Mapping[str, Any]] = {
    "cross": {"type": "cross_fields"},
    "best": {"type": "best_fields", "tie_breaker": 0.5},
}
"""How title and text count: as one field; or each has a score of its own, of which the better counts whole and the other half,
as in BEIR's BM25Search, with which DRAGIN's and SeaKR's authors search."""


@dataclass(frozen=True, slots=True)
class Index:
    """``server`` is an address (``https://host:9200``), ``index`` an index, an alias or a pattern. Fields are named with dots
    (``body.content``). ``words`` is searched; empty: title and text, as ``fields`` says. ``id`` is a field of keywords or
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
    fields: Fields = "cross"
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
        if self.fields not in _FIELDS:
            raise InvalidSetting(f"fields of an index: got {self.fields!r}, expected one of {', '.join(_FIELDS)}.")
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
            else {"multi_match": {**match, "fields": self.searched, **_FIELDS[self.fields]}}
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


# Vectors on each engine: the field that holds them, and what a search near one asks. Both look in a graph of neighbours, so
# that a near passage may be missed. Scores are the servers' own: they grow with the similarity that the field was made with.

KINDS: Mapping[Engine, str] = {"elasticsearch": "dense_vector", "opensearch": "knn_vector"}
_SIMILARITIES: Mapping[Distance, str] = {"inner": "max_inner_product", "cosine": "cosine", "euclidean": "l2_norm"}
# The engine is named, for the default changed in 2.18, to one that then did not compare by cosine.
_SPACES: Mapping[Distance, tuple[str, str]] = {
    "inner": ("innerproduct", "faiss"),
    "cosine": ("cosinesimil", "lucene"),
    "euclidean": ("l2", "faiss"),
}
_WIDTH = 256
"""Candidates that are looked at, if no more are wanted: as in our own graph (docs/results/retrieval.md)."""


def field_of(index: Index, engine: Engine, size: int) -> dict[str, Any]:
    """Mapping of a field for vectors of ``size`` numbers, kept in full: by default newer versions compare rounded ones."""
    if engine == "elasticsearch":
        similarity = {"similarity": _SIMILARITIES[index.distance], "index_options": {"type": "hnsw"}}
        return {"type": KINDS[engine], "dims": size, "index": True, **similarity}
    space, by = _SPACES[index.distance]
    return {"type": KINDS[engine], "dimension": size, "method": {"name": "hnsw", "space_type": space, "engine": by}}


def settings_of(engine: Engine) -> dict[str, Any]:
    """Of an index that has such a field."""
    return {"settings": {"index": {"knn": True}}} if engine == "opensearch" else {}


def near(index: Index, engine: Engine, vector: Vectors, k: int, filters: Filters = ()) -> tuple[dict[str, str], dict[str, Any]]:
    """Parameters and body of a search for the ``k`` nearest, in no order where scores are equal."""
    asked, looked_at = numbers(vector), max(k, _WIDTH)
    narrow = {"filter": {"bool": {"filter": clauses(filters)}}} if filters else {}
    if engine == "elasticsearch":  # the type of the search is not ours to choose
        found = {"knn": {"field": index.vectors, "query_vector": asked, "k": k, "num_candidates": looked_at, **narrow}}
    else:
        found = {"query": {"knn": {index.vectors: {"vector": asked, "k": looked_at, **narrow}}}}
    return index.parameters(repr(asked)), {**found, **index.wanted(k)}


def numbers(vector: Vectors) -> list[float]:
    """Nine digits tell every number of 32 bits from its neighbours."""
    return [float(f"{one:.9g}") for one in vector.tolist()]


# What a server's answers hold, read so that nothing that is lacking goes unnoticed.


@dataclass(frozen=True, slots=True)
class Hits:
    """``lacking`` of ``shards`` had no part in it, and why."""

    passages: tuple[ScoredPassage, ...]
    shards: int = 1
    lacking: tuple[tuple[str, str], ...] = ()


def read_hits(answer: Mapping[str, Any], index: Index, k: int) -> Hits:
    """Of a search for the ``k`` best. Raises Passing for an answer that is not whole, IndexUnavailable for one that no passage
    can be read from, InvalidSetting where more passages match than a server shows at once."""
    try:
        shards, lacking = _shards(answer)
        asked = min(k, MOST)
        total, hits = answer["hits"]["total"], answer["hits"]["hits"]
        matching = int(total["value"] if isinstance(total, dict) else total)
        expected = min(asked, matching)
        if len(hits) != expected and (len(hits) > asked or not lacking):
            raise Passing(f"the answer has {len(hits)} hits, and {expected} were to come")
        passages = tuple(ScoredPassage(_passage(hit, index), float(hit["_score"])) for hit in hits)
    except MALFORMED as error:
        raise Passing(f"the answer is not that of a search ({type(error).__name__}: {error})") from None
    if lacking and not index.partial:
        raise Passing(f"{len(lacking)} of {shards} shards gave no answer ({lacking[0][1]})")
    if k > MOST and matching > MOST:
        raise too_many(k, index)
    return Hits(passages, shards, lacking)


def too_many(k: int, index: Index) -> InvalidSetting:
    return InvalidSetting(
        f"the number of passages to retrieve: got {k}, expected at most {MOST} where more than that "
        f"match: {index.name} shows no more at once. Pass a smaller k."
    )


def _shards(answer: Mapping[str, Any]) -> tuple[int, tuple[tuple[str, str], ...]]:
    found = answer["_shards"]
    total, successful = int(found["total"]), int(found["successful"])
    reasons = [_failure(one) for one in found.get("failures", ())]
    clusters = answer.get("_clusters", {})
    reasons += [("a cluster", "was left out")] * int(clusters.get("skipped", 0))
    missing = total - successful + int(clusters.get("skipped", 0))
    if answer.get("timed_out") and not missing:
        return total, (("a shard", "ran out of time"),)
    lacking = [*reasons[:missing], *[("a shard", "no reason given")] * (missing - len(reasons))]
    return total, tuple(lacking)


def _failure(one: Mapping[str, Any]) -> tuple[str, str]:
    reason = one.get("reason")
    said = reason.get("reason") or reason.get("type") if isinstance(reason, dict) else reason
    return f"shard {one.get('shard')} of {one.get('index')}", str(said)[:200]


def _passage(hit: Mapping[str, Any], index: Index) -> Passage:
    source = hit.get("_source")
    if source is None:
        raise IndexUnavailable(
            f"{index.name} keeps no _source, of which passages are made: it can be searched by its own means only."
        )
    key = hit["_id"] if index.id == OWN_ID else field(source, index.id)
    return Passage(
        index.prefix + as_text(key),
        as_text(field(source, index.text)),
        as_text(field(source, index.title)),
        unpacked(source.get(METADATA)),
    )


def field(source: Any, name: str) -> Any:
    """The value of a field, whose dots may be steps into the object or belong to the name; None where there is none."""
    if not isinstance(source, dict) or not name:
        return None
    if name in source:
        return source[name]
    places = [place for place, letter in enumerate(name) if letter == "."]
    return next((found for place in places if (found := field(source.get(name[:place]), name[place + 1 :])) is not None), None)


def as_text(value: Any) -> str:
    """Several values are lines."""
    return "" if value is None else "\n".join(map(as_text, value)) if isinstance(value, list) else str(value)
