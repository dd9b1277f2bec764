"""A server of ours on loopback that speaks what we ask of Elasticsearch and OpenSearch, and has their faults.

What is written can be searched after a refresh and read by id at once, as there. Ranking is that of our BM25; vectors are
compared one by one, scored by the engines' formulas, and of equal scores any comes first.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import select
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.servers.lucene import as_text, field
from gnothi.types import Passage

FAULTS: tuple[str, ...] = ("429", "503", "html", "half", "fewer", "wrong", "reset", "lost", "slow")
SHARDS = 3
Reply = tuple[int, Any]


class Shelf:
    """One index."""

    def __init__(self, mapping: dict[str, Any]) -> None:
        self.mapping = mapping
        self.documents: dict[str, dict[str, Any]] = {}
        self.visible: dict[str, dict[str, Any]] = {}
        self.sequence: dict[str, int] = {}
        self.shards: dict[str, int] = {}
        self._ranking: dict[tuple[str, ...], BM25Index] = {}

    def put(self, key: str, document: dict[str, Any]) -> None:
        self.documents[key] = document
        self.sequence[key] = self.sequence.get(key, -1) + 1
        self.shards.setdefault(key, len(self.shards) % SHARDS)

    def refresh(self) -> None:
        if self.visible != self.documents:
            self.visible, self._ranking = dict(self.documents), {}

    def matching(self, query: dict[str, Any]) -> list[str]:
        return [key for key, one in self.visible.items() if self._fits(one, query)]

    def _fits(self, one: dict[str, Any], query: dict[str, Any]) -> bool:
        ((kind, said),) = query.items()
        if kind == "bool":
            some = said.get("should", ())
            return (
                all(self._fits(one, each) for each in said.get("filter", ()))
                and not any(self._fits(one, each) for each in said.get("must_not", ()))
                and (not some or any(self._fits(one, each) for each in some))
            )
        ((name, value),) = said.items()
        assert self.mapping[name]["type"] == "keyword"
        held = _values(field(one, name))
        if kind == "range":
            return any(value["gte"] <= each <= value["lte"] for each in held)
        return any(each in held for each in (value if kind == "terms" else [value]))

    def ranked(self, query: dict[str, Any], tie: str) -> list[tuple[str, float]]:
        if "bool" in query:
            (inner,) = query["bool"]["must"]
            passing = set(self.matching({"bool": {"filter": query["bool"]["filter"]}}))
            return [one for one in self.ranked(inner, tie) if one[0] in passing]
        if "multi_match" in query:
            fields, text = query["multi_match"]["fields"], query["multi_match"]["query"]
        else:
            ((name, match),) = query["match"].items()
            fields, text = [key for key, one in self.mapping.items() if one.get("copy_to", key) == name], match["query"]
        if tuple(fields) not in self._ranking:
            self._ranking[tuple(fields)] = BM25Index.in_memory(
                Passage(json.dumps([as_text(field(one, tie) if tie else ""), key]), _joined(one, fields))
                for key, one in self.visible.items()
            )
        found = self._ranking[tuple(fields)].search_blocking(text, 10**6)
        return [(json.loads(one.passage.id)[1], one.score) for one in found]

    def near(self, name: str, vector: list[float], k: int, narrow: dict[str, Any] | None = None) -> list[tuple[str, float]]:
        """The ``k`` nearest of each shard."""
        found: list[tuple[str, float]] = []
        every = self.matching(narrow) if narrow else self.visible
        there = [(key, self.visible[key][name]) for key in every if self.visible[key].get(name) is not None]
        for shard in range(SHARDS):
            of_it = [(key, _similar(self.mapping[name], vector, one)) for key, one in there if self.shards[key] == shard]
            found += sorted(of_it, key=lambda one: -one[1])[:k]
        return sorted(found, key=lambda one: -one[1])


def _similar(mapping: dict[str, Any], vector: list[float], stored: list[float]) -> float:
    """As both engines score, for whichever of their names of a similarity the field was made with."""
    one, other = np.asarray(vector, np.float32), np.asarray(stored, np.float32)
    how = mapping.get("similarity") or mapping["method"]["space_type"]
    product = float(one @ other)
    if how in ("max_inner_product", "innerproduct"):
        return product + 1 if product >= 0 else 1 / (1 - product)
    if how in ("l2_norm", "l2"):
        return 1 / (1 + float(np.sum((one - other) ** 2)))
    return (1 + product / float(np.linalg.norm(one) * np.linalg.norm(other))) / 2


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _joined(document: dict[str, Any], fields: list[str]) -> str:
    return "\n".join(as_text(field(document, name)) for name in fields)


class Fake:
    """``share`` of the requests meet a fault of ``faults``; ``secret`` is what ``Authorization`` must be; ``failed`` shards of
    three give no answer. ``answered`` counts what was answered in full."""

    def __init__(self, engine: str, major: int = 9) -> None:
        self.engine, self.major = engine, major
        self.shelves: dict[str, Shelf] = {}
        self.share, self.chance = 0.0, random.Random(3)
        self.faults = FAULTS
        self.secret, self.failed, self.status = "", 0, "green"
        self.vectors_sent = 0
        self.answered, self.met = 0, dict.fromkeys(FAULTS, 0)
        self.lock, self.closing = threading.Lock(), threading.Event()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault(self) -> str:
        with self.lock:
            if self.chance.random() >= self.share:
                return ""
            fault = self.chance.choice(self.faults)
            self.met[fault] += 1
            return fault

    def reply(self, method: str, path: str, params: dict[str, str], body: bytes) -> Reply:
        with self.lock:
            for verb, pattern, handle in _ROUTES:
                if verb == method and (found := re.fullmatch(pattern, path)):
                    return handle(self, *map(unquote, found.groups()), params=params, body=body)
        return error(400, "illegal_argument_exception", f"no handler for {method} {path}")

    # --- what is asked ----------------------------------------------------------------------------------------------

    def create(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        if name in self.shelves:
            return error(400, "resource_already_exists_exception", f"index [{name}] already exists")
        made = json.loads(body)
        mapping = made["mappings"]["properties"]
        for one in mapping.values():
            if said := self._unfit(one, made.get("settings", {})):
                return error(400, "mapper_parsing_exception", said)
        self.shelves[name] = Shelf(mapping)
        return 200, {"acknowledged": True, "index": name}

    def _unfit(self, field: dict[str, Any], settings: dict[str, Any]) -> str:
        """What is wrong with a field of vectors."""
        if field["type"] == "dense_vector":
            known = self.engine == "elasticsearch" and field["similarity"] in ("max_inner_product", "cosine", "l2_norm")
            return "" if known and field["index"] and 0 < field["dims"] <= 4096 else "dense_vector is not as it must be"
        if field["type"] == "knn_vector":
            method = field["method"]
            spaces = {"lucene": ("l2", "cosinesimil", "innerproduct"), "faiss": ("l2", "innerproduct")}[method["engine"]]
            fits = method["space_type"] in spaces and settings.get("index", {}).get("knn") is True
            return "" if self.engine == "opensearch" and fits else "knn_vector is not as it must be"
        return ""

    def drop(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        return (200, {"acknowledged": True}) if self.shelves.pop(name, None) else _absent(name)

    def settings(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        return (
            (200, {name: {"mappings": {"properties": self.shelves[name].mapping}}}) if name in self.shelves else _absent(name)
        )

    def capabilities(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        if name not in self.shelves:
            return _absent(name)
        known = self.shelves[name].mapping
        wanted = [one for one in params["fields"].split(",") if one in known]
        caps = {one: {known[one]["type"]: {"aggregatable": known[one]["type"] != "text"}} for one in wanted}
        return 200, {"indices": [name], "fields": caps}

    def health(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        return 200, {"status": self.status, "unassigned_shards": self.failed}

    def get(self, name: str, key: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        if name not in self.shelves:
            return _absent(name)
        shelf = self.shelves[name]
        if key not in shelf.documents:
            return 404, {"_index": name, "_id": key, "found": False}
        return 200, self._document(shelf, key) | {"_index": name, "_primary_term": 1}

    def put(self, name: str, key: str, *, params: dict[str, str], body: bytes) -> Reply:
        shelf = self.shelves[name]
        there = shelf.sequence.get(key)
        if ("op_type" in params and there is not None) or ("if_seq_no" in params and int(params["if_seq_no"]) != there):
            return error(409, "version_conflict_engine_exception", f"[{key}]: version conflict")
        shelf.put(key, json.loads(body))
        return 200, {"_id": key, "_seq_no": shelf.sequence[key], "_primary_term": 1, "result": "updated"}

    def bulk(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        lines = [json.loads(line) for line in body.decode().splitlines()]
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            key = action["index"]["_id"]
            full = self.share and self.chance.random() < 0.05
            if full:
                items.append({"index": {"_id": key, "status": 429, "error": {"type": "es_rejected_execution_exception"}}})
            elif document.get("text") == "unacceptable":
                items.append({"index": {"_id": key, "status": 400, "error": {"type": "strict_dynamic_mapping_exception"}}})
            else:
                self.shelves[name].put(key, document)
                items.append({"index": {"_id": key, "status": 200}})
        return 200, {"errors": any(one["index"]["status"] != 200 for one in items), "items": items}

    def several(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:
        shelf = self.shelves[name]
        found = [
            self._document(shelf, key) if key in shelf.documents else {"_id": key, "found": False}
            for key in json.loads(body)["ids"]
        ]
        for one in found:
            if "_source_excludes" in params and one["found"]:
                one["_source"] = {k: v for k, v in one["_source"].items() if k != params["_source_excludes"]}
            values = one.get("_source", {}).values()
            self.vectors_sent += any(isinstance(value, list) and not all(isinstance(n, str) for n in value) for value in values)
        return 200, {"docs": found}

    def refresh(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        self.shelves[name].refresh()
        return 200, {"_shards": {"total": 3, "successful": 3, "failed": 0}}

    def count(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:  # noqa: ARG002
        shelf = self.shelves[name]
        found = shelf.matching(json.loads(body)["query"]) if body else shelf.visible
        return 200, {"count": len(found), "_shards": {"total": 3, "successful": 3, "failed": 0}}

    def delete(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:
        shelf = self.shelves[name]
        gone = shelf.matching(json.loads(body)["query"])[: int(params["max_docs"])]
        for key in gone:
            del shelf.documents[key]
        shelf.refresh()
        return 200, {"total": len(gone), "deleted": len(gone), "failures": [], "timed_out": False, "version_conflicts": 0}

    def search(self, name: str, *, params: dict[str, str], body: bytes) -> Reply:
        if name not in self.shelves:
            return _absent(name)
        shelf, request = self.shelves[name], json.loads(body)
        if "aggs" in request:
            ((called, wanted),) = request["aggs"].items()
            values = {one for each in shelf.visible.values() for one in each.get(wanted["terms"]["field"], ())}
            fit = [one for one in sorted(values) if re.fullmatch(wanted["terms"]["include"], one)]
            return 200, {"aggregations": {called: {"buckets": [{"key": one} for one in fit]}}}
        if request["size"] > 10_000:
            return error(400, "illegal_argument_exception", "Result window is too large")
        shards: dict[str, Any] = {"total": 3, "successful": 3 - self.failed, "failed": self.failed, "skipped": 0}
        if self.failed and not {"term", "exists"} & set(request.get("query", {})):
            if params["allow_partial_search_results"] == "false":
                return error(503, "search_phase_execution_exception", "Partial shards failure")
            shards["failures"] = [{"shard": one, "index": name, "reason": {"reason": "no disk"}} for one in range(self.failed)]
        if "knn" in request or "knn" in request["query"]:
            near = self._near(name, request, params)
            if isinstance(near, tuple):
                return near
            ranked = near
        elif "exists" in request["query"]:
            return 200, self._in_order(name, request, shards)
        elif "term" in request["query"]:
            ranked = [(key, 1.0) for key in shelf.matching(request["query"])]
        else:
            assert params["search_type"] == "dfs_query_then_fetch"
            ranked = shelf.ranked(request["query"], next((key for one in request["sort"][1:] for key in one), ""))
        page = ranked[: request["size"]]
        hits = [
            {"_index": name, "_id": key, "_score": score, "_source": shelf.visible[key], "sort": [score]} for key, score in page
        ]
        total = min(len(ranked), int(request.get("track_total_hits", 10_000)))
        return 200, {
            "took": 1,
            "timed_out": False,
            "_shards": shards,
            "hits": {"total": {"value": total, "relation": "eq"}, "hits": hits},
        }

    def _in_order(self, name: str, request: dict[str, Any], shards: dict[str, Any]) -> Any:
        """By a keyword, from where the page before ended."""
        ((wanted, _),) = request["sort"][0].items()
        shelf, (after,) = self.shelves[name], request.get("search_after", [""])
        there = sorted((one[wanted], key) for key, one in shelf.visible.items() if one.get(wanted, "") > after)
        hits = [{"_id": key, "_source": shelf.visible[key], "sort": [value]} for value, key in there[: request["size"]]]
        return {"timed_out": False, "_shards": shards, "hits": {"total": {"value": len(there)}, "hits": hits}}

    def _near(self, name: str, request: dict[str, Any], params: dict[str, str]) -> list[tuple[str, float]] | Reply:
        """One engine has the nearest of all shards, the other those of each."""
        shelf = self.shelves[name]
        if self.engine == "elasticsearch":
            knn, kind, size = request["knn"], "dense_vector", "dims"
            key, vector, k = knn["field"], knn["query_vector"], knn["k"]
            if "search_type" in params:
                return error(400, "illegal_argument_exception", "cannot set [search_type] when using [knn] search")
            if not k <= knn["num_candidates"] <= 10_000:
                return error(400, "illegal_argument_exception", "[num_candidates] is out of its range")
        else:
            ((key, knn),) = request["query"]["knn"].items()
            vector, k, kind, size = knn["vector"], knn["k"], "knn_vector", "dimension"
            if not 0 < k <= 10_000:
                return error(400, "illegal_argument_exception", "[k] is out of its range")
        mapping = shelf.mapping[key]
        if mapping["type"] != kind or mapping[size] != len(vector):
            return error(400, "illegal_argument_exception", f"the query vector has a different dimension [{len(vector)}]")
        found = shelf.near(key, vector, k, knn.get("filter"))
        return found[:k] if self.engine == "elasticsearch" else found

    @staticmethod
    def _document(shelf: Shelf, key: str) -> dict[str, Any]:
        return {"_id": key, "found": True, "_seq_no": shelf.sequence[key], "_source": shelf.documents[key]}


def error(status: int, kind: str, reason: str) -> Reply:
    cause = {"type": kind, "reason": reason}
    return status, {"error": {"root_cause": [cause], **cause}, "status": status}


def _absent(name: str) -> Reply:
    return error(404, "index_not_found_exception", f"no such index [{name}]")


_NAME = r"/([^/_][^/]*)"
_ROUTES: tuple[tuple[str, str, Callable[..., Reply]], ...] = (
    ("PUT", _NAME, Fake.create),
    ("DELETE", _NAME, Fake.drop),
    ("GET", _NAME, Fake.settings),
    ("GET", f"{_NAME}/_field_caps", Fake.capabilities),
    ("GET", f"/_cluster/health{_NAME}", Fake.health),
    ("GET", f"{_NAME}/_doc/(.+)", Fake.get),
    ("PUT", f"{_NAME}/_doc/(.+)", Fake.put),
    ("POST", f"{_NAME}/_bulk", Fake.bulk),
    ("POST", f"{_NAME}/_mget", Fake.several),
    ("POST", f"{_NAME}/_refresh", Fake.refresh),
    ("POST", f"{_NAME}/_count", Fake.count),
    ("POST", f"{_NAME}/_delete_by_query", Fake.delete),
    ("POST", f"{_NAME}/_search", Fake.search),
)


class _Handler(BaseHTTPRequestHandler):
    fake: Fake
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = self.fake.fault()
        parts = urlsplit(self.path)
        reply: Reply
        if refused := self._refused():
            reply = refused
        elif fault == "429":
            reply = error(429, "es_rejected_execution_exception", "queue is full")
        elif fault == "503":
            reply = error(503, "unavailable_shards_exception", "primary shard is not active")
        elif fault == "reset":
            self._hang_up()
            return
        elif fault == "html":
            self._send(200, b"<html>Please log in</html>", "text/html")
            return
        else:
            reply = self.fake.reply(self.command, parts.path, dict(parse_qsl(parts.query)), body)
        self._answer(*reply, fault)

    def _answer(self, status: int, answer: Any, fault: str) -> None:
        """What was asked is done; the answer may get lost."""
        if fault == "lost":
            self._hang_up()
            return
        if fault == "slow":
            self._dawdle()
            return
        if fault == "wrong":
            answer = [] if self.fake.chance.random() < 0.5 else {"acknowledged": True} if status == 200 else answer
        if fault == "fewer" and isinstance(answer, dict):
            answer = _fewer(answer)
        raw = json.dumps(answer).encode()
        if fault == "half":
            raw = raw[: len(raw) // 2]
        else:
            with self.fake.lock:
                self.fake.answered += 1
        self._send(status, raw, "application/json")

    def _dawdle(self) -> None:
        """The answer is not there until the other side waits no more."""
        while not self.fake.closing.is_set() and not select.select([self.connection], [], [], 0.05)[0]:
            pass
        self._hang_up()

    def _refused(self) -> Reply | None:
        if self.fake.secret and self.headers.get("authorization", "") != self.fake.secret:
            return error(401, "security_exception", "missing authentication credentials")
        match = re.search(r"compatible-with=(\d+)", self.headers.get("accept", ""))
        if match and int(match[1]) not in (self.fake.major, self.fake.major - 1):
            said = f"Accept version must be either version {self.fake.major} or {self.fake.major - 1}, but found {match[1]}"
            return error(400, "media_type_header_exception", said)
        return None

    def _send(self, status: int, raw: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(raw)))
            if self.fake.engine == "elasticsearch":
                self.send_header("X-Elastic-Product", "Elasticsearch")
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(raw)
        except OSError:  # the other side waits no more
            self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):  # the other side was first
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_POST = do_PUT = do_DELETE = _handle

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


def _fewer(answer: dict[str, Any]) -> dict[str, Any]:
    """A page that has lost some of what it holds."""
    for key in ("items", "docs"):
        if answer.get(key):
            return {**answer, key: answer[key][:-1]}
    if "hits" in answer and answer["hits"]["hits"]:
        return {**answer, "hits": {**answer["hits"], "hits": answer["hits"]["hits"][:-1]}}
    return answer
