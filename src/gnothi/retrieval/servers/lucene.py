"""Searching indices of Elasticsearch and OpenSearch, which ask and answer alike (both run on Lucene): by words (BM25), by
vectors, or by both."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from gnothi import events
from gnothi.errors import MALFORMED, IndexUnavailable, InvalidSetting, malformation
from gnothi.protocols import Retriever
from gnothi.retrieval.analysis import TIE_BREAKER, Fields, as_fields, unpacked
from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.filtering import cannot
from gnothi.retrieval.filters import Filter, Filters
from gnothi.retrieval.results import ranked
from gnothi.retrieval.servers.patience import Passing, Patience, Unreached
from gnothi.retrieval.servers.searching import (
    METADATA,
    TERMS,
    Distance,
    Place,
    Results,
    ServerPart,
    Waits,
    all_contents,
    check_address,
    check_weights,
    described,
    searcher,
    without_user,
)
from gnothi.retrieval.servers.web import Unconnected, Unfetched, anywhere, fetch
from gnothi.retrieval.terms import key_of, key_term
from gnothi.retrying import asked_to_wait, worth_another_try
from gnothi.types import Passage, ScoredPassage, encodable

Engine = Literal["elasticsearch", "opensearch"]
TITLES: Mapping[Engine, str] = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}
OWN_ID = "_id"
MOST = 10_000
"""Hits of one search: index.max_result_window as it is unless somebody changes it."""
BESIDE = "-gnothi"
"""How the index of what we note ends."""
NOTES = "_doc/notes"
_MORE = 16
_MOST_BYTES = 1 << 30
T = TypeVar("T")

_FIELDS: Mapping[Fields, Mapping[str, Any]] = {
    "cross": {"type": "cross_fields"},
    "best": {"type": "best_fields", "tie_breaker": TIE_BREAKER},
}


@dataclass(frozen=True)
class Index(Place, Waits):
    """``server`` is an address (``https://host:9200``), ``index`` an index, an alias or a pattern. Fields are named with dots
    (``body.content``). Empty ``words``: title and text are searched, as ``fields`` says. ``id`` is a field of keywords or
    numbers, or ``_id``. ``secret`` names the environment variable with the password of ``user``, or with an API key.
    ``certificates`` is a file of those who sign the server's. ``partial``: the passages of the shards that answer are the
    result, and it is said that some did not."""

    index: str = "passages"
    fields: Fields = "cross"
    user: str = ""
    secret: str = ""
    certificates: str = ""
    partial: bool = False
    optional: bool = False
    noun: ClassVar[str] = "index"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_fields(self.fields)
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
    def passage_fields(self) -> list[str]:
        """Fields that make a passage."""
        return [name for name in (self.id, self.title, self.text) if name and name != OWN_ID]

    def by_words(self, query: str, k: int, filters: Filters = ()) -> tuple[dict[str, str], dict[str, Any]]:
        """Parameters and body. Any word may match; nothing in the query is an operator. Rare words are counted over all shards
        (dfs), and equal queries go to equal copies, so that a ranking depends neither on shards nor on chance."""
        match = {"query": query, "operator": "or"}
        matching = (
            {"match": {self.words: match}}
            if self.words
            else {"multi_match": {**match, "fields": self.searched, **_FIELDS[self.fields]}}
        )
        ties: list[dict[str, str]] = [] if self.id == OWN_ID else [{self.id: "asc"}]
        parameters = {"search_type": "dfs_query_then_fetch", **self.parameters(query)}
        return parameters, {
            "query": {"bool": {"must": [matching], "filter": clauses(filters)}} if filters else matching,
            "track_scores": True,
            "sort": [{"_score": "desc"}, *ties],
            **self.wanted(k),
        }

    def parameters(self, query: str) -> dict[str, str]:
        """Of any search."""
        return {
            "allow_partial_search_results": "true" if self.partial else "false",
            "preference": blake2b(query.encode(), digest_size=8).hexdigest(),
        }

    def wanted(self, k: int) -> dict[str, Any]:
        """What comes of ``k`` hits, and how many there are to count."""
        return {
            "size": k,
            "track_total_hits": k + 1,
            "timeout": f"{max(1, round(self.timeout * 1000))}ms",
            "_source": [*self.passage_fields, METADATA],
        }


def clauses(filters: Filters) -> list[dict[str, Any]]:
    """Filters as queries that score nothing."""
    return [_clause(one) for one in filters]


def _clause(condition: Filter) -> dict[str, Any]:
    exact = [low for low, high in condition.spans if low == high]
    some: list[dict[str, Any]] = [{"terms": {TERMS: exact}}] if exact else []
    some += [{"range": {TERMS: {"gte": low, "lte": high}}} for low, high in condition.spans if low != high]
    if condition.negated:
        return {"bool": {"filter": [{"term": {TERMS: key_term(condition.key)}}], "must_not": some}}
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
    values, looked_at = numbers(vector), max(k, _WIDTH)
    narrow = {"filter": {"bool": {"filter": clauses(filters)}}} if filters else {}
    if engine == "elasticsearch":  # the type of the search is not ours to choose
        body = {"knn": {"field": index.vectors, "query_vector": values, "k": k, "num_candidates": looked_at, **narrow}}
    else:
        body = {"query": {"knn": {index.vectors: {"vector": values, "k": looked_at, **narrow}}}}
    return index.parameters(repr(values)), {**body, **index.wanted(k)}


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
        wanted = min(k, MOST)
        total, hits = answer["hits"]["total"], answer["hits"]["hits"]
        matching = int(total["value"] if isinstance(total, dict) else total)
        expected = min(wanted, matching)
        if len(hits) != expected and (len(hits) > wanted or not lacking):
            raise Passing(f"the answer has {len(hits)} hits, and {expected} were to come")
        passages = tuple(ScoredPassage(_passage(hit, index), float(hit["_score"])) for hit in hits)
    except MALFORMED as error:
        raise Passing(f"the answer is not that of a search ({malformation(error)})") from None
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
    shards = answer["_shards"]
    total, successful = int(shards["total"]), int(shards["successful"])
    reasons = [_failure(one) for one in shards.get("failures", ())]
    clusters = answer.get("_clusters", {})
    reasons += [("a cluster", "was left out")] * int(clusters.get("skipped", 0))
    missing = total - successful + int(clusters.get("skipped", 0))
    if answer.get("timed_out") and not missing:
        return total, (("a shard", "ran out of time"),)
    lacking = [*reasons[:missing], *[("a shard", "no reason given")] * (missing - len(reasons))]
    return total, tuple(lacking)


def _failure(failure: Mapping[str, Any]) -> tuple[str, str]:
    reason = failure.get("reason")
    text = reason.get("reason") or reason.get("type") if isinstance(reason, dict) else reason
    return f"shard {failure.get('shard')} of {failure.get('index')}", str(text)[:200]


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
    return next((value for place in places if (value := field(source.get(name[:place]), name[place + 1 :])) is not None), None)


def as_text(value: Any) -> str:
    """Several values are lines."""
    return "" if value is None else "\n".join(map(as_text, value)) if isinstance(value, list) else str(value)


# Requests, each by a connection of its own.


class Refused(IndexUnavailable):
    """The server understood, and says no; ``status`` is that of HTTP, ``kind`` the server's name for it."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class Client:
    """Raises InvalidSetting without the secret that is needed."""

    def __init__(self, index: Index, engine: Engine) -> None:
        self.index, self._engine = index, engine
        user, secret = index.credentials(engine)
        who = f"Basic {b64encode(f'{user}:{secret}'.encode()).decode()}" if user else f"ApiKey {secret}"
        self._headers = {"Accept": "application/json"} | ({"Authorization": who} if secret else {})

    def ask(self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """``body`` is an object, or lines of JSON. Raises ``Passing`` for what may pass, else Refused."""
        kind = "application/x-ndjson" if isinstance(body, str) else "application/json"
        sent = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        try:
            response = fetch(
                self.index.address + path + (f"?{urlencode(params)}" if params else ""),
                allowed=anywhere,
                most=_MOST_BYTES,
                seconds=self.index.timeout,
                headers=self._headers | ({} if sent is None else {"Content-Type": kind}),
                redirects=0,
                method=method,
                body=sent,
                certificates=self.index.certificates or None,
            )
        except Unfetched as error:
            raise (Unreached if isinstance(error, Unconnected) else Passing)(str(error)) from None
        try:
            answer = json.loads(response.body)
        except MALFORMED:
            answer = None
        if response.status >= 300:
            raise self._refusal(response.status, response.headers, answer)
        if not isinstance(answer, dict):  # a page of a proxy, say, or half of one
            raise Passing(f"the answer is no JSON object but {_short(response.body[:1000].decode('utf-8', 'replace'))}")
        return answer

    def _refusal(self, status: int, headers: Mapping[str, str], answer: Any) -> Exception:
        kind, reason = _reason(answer)
        if worth_another_try(status) and status != 409:  # a conflict of versions stays one
            return Passing(f"status {status}{f', {reason}' if reason else ''}", asked_to_wait(headers))
        if status == 400 and not kind:  # what we ask for is refused with a reason, unless it was lost on the way
            return Passing(f"status {status} without a reason that can be read")
        advice = f"Check the names in <--index {self._engine}:...>; fields are named in a file, {self._engine}:FILE.toml."
        if status in (401, 403):
            advice = f"Check the user and the secret (docs: search servers), and what they may do with {self.index.index}."
        message = f"{self.index.name}: {TITLES[self._engine]} says {status}: {reason or 'no reason'}. {advice}"
        return Refused(message, status, kind)


def _reason(body: Any) -> tuple[str, str]:
    """What an error's body says: the server's name for it, and its reason."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", _short(str(error or ""))
    causes = error.get("root_cause")
    first = causes[0] if isinstance(causes, list) and causes and isinstance(causes[0], dict) else error
    kind, reason = first.get("type", error.get("type", "")), first.get("reason", error.get("reason", ""))
    return str(kind), _short(f"{reason} ({kind})")


def _short(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= 200 else f"{text[:197]}..."


def read_notes(client: Client) -> dict[str, Any]:
    """The document that notes what we built, with its version; nothing for an index of others, or for a pattern."""
    if set(client.index.index) & set("*,<>:"):
        return {}
    try:
        answer = client.ask("GET", client.index.path(NOTES, BESIDE))
    except Refused as error:
        if error.status != 404:
            raise
        return {}
    if not isinstance(answer.get("_source"), dict):
        raise Passing("the answer is not that of a document")
    place_of(answer)
    return answer


def place_of(answer: Mapping[str, Any]) -> tuple[int, int]:
    """Where a document stands among its versions. Raises Passing for an answer that does not tell: taken for one, the next note
    would be taken for another build's."""
    sequence, term = answer.get("_seq_no"), answer.get("_primary_term")
    if not isinstance(sequence, int) or not isinstance(term, int):
        raise Passing("the answer does not tell the document's version")
    return sequence, term


class Server:
    """One index as it is asked: at most ``connections`` searches at a time. Used in one event loop."""

    def __init__(self, index: Index, engine: Engine) -> None:
        self.index, self.engine = index, engine
        self.name, self.optional = index.name, index.optional
        self._client = Client(index, engine)
        self._patience = Patience(index.patience, index.name)
        self._has_terms: bool | None = None
        self._room = asyncio.Semaphore(index.connections)

    async def ask(self, method: str, path: str, body: Any, params: Mapping[str, str], read: Callable[[Any], T]) -> T:
        """Raises IndexUnavailable where there is no answer in time that can be read."""

        async def attempt() -> T:
            async with self._room:
                self._patience.check()
                return read(await asyncio.to_thread(self._client.ask, method, self.index.path(path), body, params))

        return await self._patience.persist(attempt)

    async def hits(self, params: Mapping[str, str], body: Mapping[str, Any], k: int) -> Results:
        """Of a search for the ``k`` best. Raises as ``ask``."""
        hits = await self.ask("POST", "_search", body, params, lambda answer: read_hits(answer, self.index, k))
        if hits.lacking:
            events.emit(events.Partial(self.index.name, hits.shards, hits.lacking))
        return hits.passages

    async def keys(self) -> list[str]:
        """Of the metadata of all passages."""
        if not await self.filters():
            return []
        named = {"terms": {"field": TERMS, "include": f"{key_term('')}.*", "size": MOST}}
        body = {"size": 0, "aggs": {"keys": named}}
        answer = await self.ask("POST", "_search", body, self.index.parameters("keys"), dict)
        return [key_of(str(one["key"])) for one in answer["aggregations"]["keys"]["buckets"]]

    async def filters(self) -> bool:
        """Whether the index keeps metadata."""
        if self._has_terms is None:
            self._has_terms = TERMS in (await self.ask("GET", "_field_caps", None, {"fields": TERMS}, dict)).get("fields", {})
        return self._has_terms

    async def aclose(self) -> None:
        """Each request has a connection of its own."""


class _Part(ServerPart[Server]):
    """Passages that hold any word of the query, or whose vectors are near that of it."""

    async def search(self, query: str, k: int, filters: Filters = ()) -> Results:
        server, index, vector = self._server, self._server.index, await self.vector(query)
        if filters and not await server.filters():
            raise cannot(index.name, f"field {TERMS}")
        if vector is None:
            return ranked(await server.hits(*index.by_words(encodable(query), min(k, MOST), filters), k), k)
        wanted = k if k > MOST else min(k + _MORE, MOST)  # it is left open which of several with one score come first
        try:
            passages = await server.hits(*near(index, server.engine, vector, min(wanted, MOST), filters), wanted)
        except Refused as error:
            if error.status != 400:
                raise
            raise Refused(
                f"{error} Questions are read by the encoder {index.encoder!r}: name the one that made the vectors of "
                f"{index.vectors!r}.",
                error.status,
                error.kind,
            ) from None
        if k > MOST and len(passages) == MOST:  # nobody counts how many more there are
            raise too_many(k, index)
        return ranked(passages, k)


def opened(argument: str, engine: Engine) -> Retriever:
    """Raises IndexUnavailable where a server cannot be reached or lacks the index or a field, unless it is optional."""
    servers = {index: Server(index, engine) for index in indices(argument, engine)}
    # Each server knows only how rare words are among its own passages: scores of two are not of one kind.
    return searcher(
        list(servers),
        f"{engine}:{argument}",
        lambda index: _check(index, engine),
        lambda index, encoder: _Part(servers[index], encoder),
        alike=len(servers) == 1,
    )


def fingerprint(argument: str, engine: Engine) -> str:
    """Of indices that we built; empty where one of them was made by others, or does not answer and need not."""

    def content(index: Index) -> str:
        return str(_first_answer(index, lambda: read_notes(Client(index, engine))).get("_source", {}).get("content", ""))

    return all_contents(map(content, indices(argument, engine)))


def _first_answer(index: Index, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Asks at once, so that mistakes show before the first question. Nothing where an optional server does not answer."""
    try:
        return ask()
    except (IndexUnavailable, Passing) as error:
        if index.optional:  # each search says that it lacks it
            return {}
        if isinstance(error, IndexUnavailable):
            raise
        raise IndexUnavailable(f"{index.name} cannot be reached: {error}. Check its address, and that it runs.") from None


def _check(index: Index, engine: Engine) -> None:
    """The fields are there, can be searched, and no shard is lost."""
    client = Client(index, engine)

    def ask() -> dict[str, Any]:
        _check_fields(client, index, engine)
        _health(client, index)
        return read_notes(client) if index.by != "words" else {}

    check_weights(_first_answer(index, ask).get("_source", {}), index.name, index.encoder)


def _check_fields(client: Client, index: Index, engine: Engine) -> None:
    searched = {"words": index.searched, "vectors": [index.vectors], "both": [*index.searched, index.vectors]}[index.by]
    wanted = dict.fromkeys([*index.passage_fields, *searched])
    answer = client.ask("GET", index.path("_field_caps"), params={"fields": ",".join(wanted)})
    known = answer.get("fields", {})
    lacking = [name for name in wanted if name not in known]
    if lacking:
        raise IndexUnavailable(
            f"{index.name} has no field {', '.join(map(repr, lacking))}. Name its own fields in a file: id, title, text and "
            'words (words = "" searches title and text), or vectors.'
        )
    if index.by != "words" and set(known[index.vectors]) != {KINDS[engine]}:
        raise IndexUnavailable(
            f"{index.name}: the field {index.vectors!r} is of type {', '.join(sorted(known[index.vectors]))}, expected "
            f'{KINDS[engine]}. Name the one that holds the vectors: vectors = "..." in the file that describes the index.'
        )
    if index.id != OWN_ID and not all(one.get("aggregatable") for one in known[index.id].values()):
        raise IndexUnavailable(
            f"{index.name}: the field {index.id!r} cannot be sorted by. Name one of keywords or numbers, as "
            f'{index.id}.keyword, or the server\'s own: id = "_id".'
        )


def _health(client: Client, index: Index) -> None:
    try:
        answer = client.ask("GET", "/_cluster/health/" + index.path("").strip("/"))
    except Refused:
        return  # not everybody may ask; each search says what it lacks
    if answer.get("status") == "red" and not index.partial:
        raise IndexUnavailable(
            f"{index.name} is red (missing shards: {answer.get('unassigned_shards', 'some')}). Repair it, or search "
            "what is there: partial = true in the file that describes it."
        )
