"""Requests to one server by the official clients. Their own retries are off: one patience rules."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from gnothi.errors import MALFORMED, IndexUnavailable, MissingDependency
from gnothi.retrieval.servers.lucene.index import TITLES, Engine, Index
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.retrying import asked_to_wait, worth_another_try

JSON, LINES = "application/json", "application/x-ndjson"
_VERSIONS = "media_type_header_exception"
for _name in ("elastic_transport", "opensearch"):  # what they would print of failures comes as errors and patience
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Refused(IndexUnavailable):
    """The server understood, and says no; ``status`` is that of HTTP, ``kind`` the server's name for it."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class Client:
    """``ask`` in one event loop, ``ask_blocking`` without one. Both raise ``Passing`` for what may pass, else Refused."""

    def __init__(self, index: Index, engine: Engine) -> None:
        """Raises MissingDependency, or InvalidSetting without the secret that is needed."""
        self.index, self._engine = index, engine
        user, secret = index.credentials(engine)
        self._options = _elasticsearch(index, user, secret) if engine == "elasticsearch" else _opensearch(index, user, secret)
        self._async: Any = None
        self._sync: Any = None

    async def ask(
        self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None, kind: str = JSON
    ) -> dict[str, Any]:
        self._async = self._async or self._made("Async")
        with self._told():
            async with asyncio.timeout(self.index.timeout):
                return _answer(await self._asked(self._async)(method, path, **_sent(body, params, kind)))

    def ask_blocking(
        self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None, kind: str = JSON
    ) -> dict[str, Any]:
        self._sync = self._sync or self._made("")
        with self._told():
            return _answer(self._asked(self._sync)(method, path, **_sent(body, params, kind)))

    async def aclose(self) -> None:
        client, self._async = self._async, None
        if client is not None:
            with suppress(Exception):  # nothing is lost by a bad farewell
                await client.close()
        self.close()

    def close(self) -> None:
        client, self._sync = self._sync, None
        if client is not None:
            with suppress(Exception):
                client.close()

    def _made(self, way: str) -> Any:
        if self._engine == "elasticsearch":
            import elasticsearch

            return getattr(elasticsearch, f"{way}Elasticsearch")(self.index.address, **self._options)
        import opensearchpy

        return getattr(opensearchpy, f"{way}OpenSearch")(self.index.address, **self._options)

    def _asked(self, client: Any) -> Any:
        return (client if self._engine == "elasticsearch" else client.transport).perform_request

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise Passing(f"no answer within {self.index.timeout:g} s") from None
        except (IndexUnavailable, Passing, asyncio.CancelledError):
            raise
        except Exception as error:  # each client has a tree of its own
            if not type(error).__module__.startswith(("elastic", "opensearchpy")):
                raise
            raise self._as_ours(error) from None

    def _as_ours(self, error: Any) -> Exception:
        meta = getattr(error, "meta", None)  # Elasticsearch's errors of HTTP
        status = meta.status if meta is not None else getattr(error, "status_code", None)
        status = status if isinstance(status, int) else 0
        if not status:
            said = getattr(error, "message", "") or getattr(error, "error", "") or str(error)  # their str() hides the cause
            return Passing(_short(str(said) or type(error).__name__))
        body = getattr(error, "body", None) if meta is not None else getattr(error, "info", None)
        kind, reason = _reason(body)
        if worth_another_try(status) and status != 409:  # a conflict of versions stays one
            wait = asked_to_wait({key.lower(): value for key, value in meta.headers.items()}) if meta is not None else None
            return Passing(f"status {status}{f', {reason}' if reason else ''}", wait)
        if status == 400 and not kind:  # what we ask for is refused with a reason, unless it was lost on the way
            return Passing(f"status {status} without a reason that can be read")
        said = f"{self.index.name}: {TITLES[self._engine]} says {status}: {reason or _short(str(error))}."
        if kind == _VERSIONS or type(error).__name__ == "UnsupportedProductError":
            said += (
                f" The client and the server are of versions that do not go together: install the {self._engine} package of "
                f"the server's version, as pip install '{self._engine}[async]<9' for version 8."
            )
        elif status in (401, 403):
            said += f" Check the user and the secret (docs: search servers), and what they may do with {self.index.index}."
        else:
            said += f" Check the names in <--index {self._engine}:...>; fields are named in a file, {self._engine}:FILE.toml."
        return Refused(said, status, kind)


def _elasticsearch(index: Index, user: str, secret: str) -> dict[str, Any]:
    try:
        import aiohttp  # noqa: F401 - what the client's asynchronous half asks by
        import elasticsearch  # noqa: F401
    except ImportError as error:
        raise MissingDependency("elasticsearch[async]", "elasticsearch", "<--index elasticsearch:...>") from error
    who = {"basic_auth": (user, secret)} if user else {"api_key": secret} if secret else {}
    files = {"ca_certs": index.certificates} if index.certificates else {}
    return {"request_timeout": index.timeout, "max_retries": 0, "retry_on_timeout": False, **who, **files}


def _opensearch(index: Index, user: str, secret: str) -> dict[str, Any]:
    try:
        import aiohttp  # noqa: F401
        import opensearchpy  # noqa: F401
    except ImportError as error:
        raise MissingDependency("opensearch-py[async]", "opensearch", "<--index opensearch:...>") from error
    who = {"http_auth": (user, secret)} if user else {}
    files = {"ca_certs": index.certificates} if index.certificates else {}
    return {"timeout": index.timeout, "max_retries": 0, "retry_on_timeout": False, **who, **files}


def _sent(body: Any, params: Mapping[str, str] | None, kind: str) -> dict[str, Any]:
    headers = {"accept": JSON} | ({"content-type": kind} if body is not None else {})
    return {"params": dict(params or {}), "headers": headers, "body": body}


def _answer(answer: Any) -> dict[str, Any]:
    """An object of JSON: neither a page of a proxy nor half of one."""
    body = getattr(answer, "body", answer)
    if not isinstance(body, dict):
        raise Passing(f"the answer is no JSON object but {_short(repr(body))}")
    return body


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


# Requests of a build, each asked until it is answered in full. Asking twice does no harm: every document has its own id.

T = TypeVar("T")
_REQUEST_BYTES = 5_000_000
_PAGE = 1000


class Steady:
    def __init__(self, client: Client) -> None:
        self.client, self.index = client, client.index
        self._patience = Patience(client.index.patience, client.index.name)

    def ask(self, attempt: Callable[[], T]) -> T:
        """Raises IndexUnavailable when patience is over, or where the server refuses."""

        def read() -> T:
            try:
                return attempt()
            except MALFORMED as error:
                raise Passing(f"an answer that makes no sense ({type(error).__name__}: {error})") from None

        return self._patience.persist_blocking(read)

    def send(self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        return self.ask(lambda: self.client.ask_blocking(method, path, body, params))

    def refresh(self, beside: str = "") -> None:
        """What was written can be searched."""
        self.ask(lambda: _all_shards(self.client.ask_blocking("POST", self.index.path("_refresh", beside))))

    def count(self, query: Mapping[str, Any] | None = None) -> int:
        body = {"query": query} if query else None
        return self.ask(lambda: int(_all_shards(self.client.ask_blocking("POST", self.index.path("_count"), body))["count"]))

    def every(self, field: str, beside: str) -> Iterator[dict[str, Any]]:
        """All documents that have the field, a keyword that is different in each."""
        self.refresh(beside)
        after: list[Any] = []
        while True:
            body = {"query": {"exists": {"field": field}}, "size": _PAGE, "sort": [{field: "asc"}]}
            found = self.ask(partial(self._page, {**body, "search_after": after} if after else body, beside))
            yield from (one["_source"] for one in found)
            if len(found) < _PAGE:
                return
            after = found[-1]["sort"]

    def _page(self, body: Mapping[str, Any], beside: str) -> list[dict[str, Any]]:
        answer = _all_shards(self.client.ask_blocking("POST", self.index.path("_search", beside), body))
        return list(answer["hits"]["hits"])

    def documents(self, ids: list[str], without: str = "") -> dict[str, dict[str, Any]]:
        """Those of these ids that are there, written a moment ago or long since, by id; each ``without`` that field."""
        params = {"_source_excludes": without} if without else {}

        def attempt() -> dict[str, dict[str, Any]]:
            found = self.client.ask_blocking("POST", self.index.path("_mget"), {"ids": ids}, params)["docs"]
            if [one["_id"] for one in found] != ids or any("error" in one for one in found):
                raise Passing(f"the answer has {len(found)} of {len(ids)} documents, or errors")
            return {one["_id"]: one["_source"] for one in found if one["found"]}

        return self.ask(attempt) if ids else {}

    def bulk(self, documents: Mapping[str, Mapping[str, Any]], beside: str = "") -> None:
        """Put each, by its id; those that the server had no room for again."""
        for part in _parts(documents):
            self.ask(partial(self._put, part, beside))

    def _put(self, left: dict[str, str], beside: str) -> None:
        """Takes out of ``left`` what the server has."""
        answer = self.client.ask_blocking("POST", self.index.path("_bulk", beside), "".join(left.values()), kind=LINES)
        for one in answer["items"]:
            done = one["index"]
            if done["status"] < 300:
                left.pop(done["_id"], None)
            elif not worth_another_try(done["status"]):
                raise IndexUnavailable(
                    f"{self.index.name} does not take a passage: {json.dumps(done.get('error'))[:300]}. Correct it, "
                    "or leave it out; what was written stays."
                )
        if left:
            raise Passing(f"{len(left)} documents were not taken")

    def delete(self, query: Mapping[str, Any], beside: str = "") -> None:
        """All that match. What was written before is looked through, too."""
        self.refresh(beside)
        params = {"refresh": "true", "conflicts": "proceed", "max_docs": "1000"}

        def attempt() -> int:
            answer = self.client.ask_blocking("POST", self.index.path("_delete_by_query", beside), {"query": query}, params)
            if answer["failures"] or answer["timed_out"] or answer["version_conflicts"]:
                raise Passing(f"not all could be deleted: {json.dumps(answer['failures'])[:200]}")
            return int(answer["total"])

        while self.ask(attempt):
            pass


def _parts(documents: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Lines of a request, by id, in requests of a size that servers take."""
    part: dict[str, str] = {}
    size = 0
    for key, document in documents.items():
        line = json.dumps({"index": {"_id": key}}) + "\n" + json.dumps(document, ensure_ascii=False) + "\n"
        if part and size + len(line.encode()) > _REQUEST_BYTES:
            yield part
            part, size = {}, 0
        part[key] = line
        size += len(line.encode())
    if part:
        yield part


def _all_shards(answer: dict[str, Any]) -> dict[str, Any]:
    shards = answer["_shards"]
    if shards.get("failed") or answer.get("timed_out"):
        raise Passing(f"{shards.get('failed')} of {shards['total']} shards gave no answer")
    return answer
