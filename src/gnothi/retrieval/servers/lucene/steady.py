"""Requests of a build, each asked until it is answered in full. Asking twice does no harm: every document has its own id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from gnothi.errors import MALFORMED, IndexUnavailable
from gnothi.retrieval.servers.lucene.client import LINES, Client
from gnothi.retrieval.servers.patience import Passing, Patience
from gnothi.retrying import worth_another_try

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
