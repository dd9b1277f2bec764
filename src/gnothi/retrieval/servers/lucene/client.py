"""Requests to one server by the official clients. Their own retries are off: one patience rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from gnothi.errors import IndexUnavailable, MissingDependency
from gnothi.retrieval.servers.lucene.index import TITLES, Engine, Index
from gnothi.retrieval.servers.patience import Passing
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
