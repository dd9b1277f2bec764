"""Bad requests to every route of ``gnothi serve``: a good request, changed, over ASGI within this process."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit

from benchmarks._faults_fuzz import seeds
from benchmarks._faults_mutate import CANARY, TEXTS, TOKENS, changed_bytes, changed_tree
from benchmarks._faults_trial import SECONDS, STEERING, WATCH, Late, confine, limited, patience, script, where

KNOWN = "Who wrote the heron book?"


@dataclass(frozen=True, slots=True)
class Asking:
    """A request as a server's ASGI application gets it. ``leaves``: the client goes after so many messages of the response."""

    method: str
    target: str
    body: Any = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    raw: bytes | None = None
    pieces: int = 1
    leaves: int | None = None

    @property
    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        try:
            return b"" if self.body is None else json.dumps(self.body).encode("utf-8", "surrogatepass")
        except (RecursionError, ValueError):  # deeper than Python writes, or within itself
            return b'{"a":' * 5_000


@dataclass(slots=True)
class Reply:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    whole: bool = False


@dataclass(slots=True)
class Side:
    """One server with what its good requests need. ``answer`` and ``page`` are of the last good question."""

    app: Any
    context: Any
    key: str = ""
    first: str = ""
    answer: str = ""
    page: str = ""
    report: str = ""


_SIDES: list[Side] = []
_LOOP = asyncio.new_event_loop()
KINDS = ("chat", "responses", "search", "know", "feedback", "mcp", "models", "page", "passages", "runs", "health")
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    seeds(folder / "seeds", heavy=False)
    (folder / CANARY).write_text("secret")
    work = folder / "work"
    (work / "runs").mkdir(parents=True)
    shutil.copytree(folder / "seeds" / "run", work / "runs" / "run")
    os.chdir(work)
    _LOOP.run_until_complete(_open(folder))
    confine()


async def _open(folder: Path) -> None:
    from gnothi.serving import keys

    file = folder / "work" / "keys.json"
    key = keys.add(file, "someone")
    for name, more in (("open", {"log_content": True}), ("keyed", {"keys": file})):
        held = asyncio.Event()
        task = asyncio.ensure_future(_hold(folder, name, more, key, held))
        waiting = asyncio.ensure_future(held.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        _SIDES[-1].first = await _good(_SIDES[-1])
        _TASKS.append(task)


_TASKS: list[asyncio.Task[None]] = []


async def _hold(folder: Path, name: str, more: Mapping[str, Any], key: str, held: asyncio.Event) -> None:
    async with _served(folder, name, more) as side:
        side.key = key if "keys" in more else ""
        _SIDES.append(side)
        held.set()
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def _served(folder: Path, name: str, more: Mapping[str, Any]) -> AsyncIterator[Side]:
    from gnothi.serving import logs
    from gnothi.serving.app import context_of, create_app
    from gnothi.serving.service import open_service
    from gnothi.serving.settings import ServerSettings
    from gnothi.serving.setups import plans
    from gnothi.session.plan import Request
    from gnothi.testing.model import Scripted

    logs.install()
    model = Scripted(script, name="lab", thresholds={"gram": -6.0})
    found = plans(Request(("seakr", "rag", "direct"), model=model, index=str(folder / "seeds" / "index")))
    settings = ServerSettings(
        runs=folder / "work" / "runs", feedback=folder / "work" / f"{name}.jsonl", feedback_content=True, timeout=8.0, **more
    )
    async with open_service(found) as service:
        context = context_of(service, settings)
        app = create_app(context)
        async with app.router.lifespan_context(app):
            yield Side(app, context)


# --- requests --------------------------------------------------------------------------------------------------------------


def goods(side: Side, rng: Random) -> dict[str, Asking]:
    """A good request for each route."""
    user = [{"role": "user", "content": KNOWN}]
    talk = [{"role": "user", "content": "Who waits?"}, {"role": "assistant", "content": "A heron."}, *user]
    parts = [{"role": "user", "content": [{"type": "text", "text": KNOWN}]}]
    messages = rng.choice((user, talk, parts))
    model = f"gnothi/{rng.choice(('seakr', 'rag', 'direct'))}"
    stream = rng.random() < 0.4
    call = {"name": rng.choice(("ask", "search", "know")), "arguments": {"question": KNOWN, "query": "heron", "k": 2}}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": rng.choice(("tools/list", "tools/call", "ping", "initialize")), "params": call}
    accept = ((b"accept", b"application/json, text/event-stream"), (b"mcp-protocol-version", b"2025-06-18"))
    chat = {"model": model, "messages": messages, "stream": stream, "stream_options": {"include_usage": True}, "n": 1}
    given = {"model": model, "input": rng.choice((KNOWN, talk)), "stream": stream, "text": {"format": {"type": "text"}}}
    return {
        "chat": Asking("POST", "/v1/chat/completions", chat | {"tools": [], "tool_choice": "auto", "temperature": 0.5}),
        "responses": Asking("POST", "/v1/responses", given | {"include": [], "background": False, "top_logprobs": 0}),
        "search": Asking("POST", "/v1/search", {"model": model, "query": "heron plums", "k": 3}),
        "know": Asking("POST", "/v1/know", {"model": "gnothi/seakr", "question": KNOWN}),
        "feedback": Asking("POST", "/v1/feedback", {"id": side.answer, "right": True}),
        "mcp": Asking("POST", "/mcp", rpc, accept),
        "models": Asking("GET", rng.choice(("/v1/models", f"/v1/models/{model}"))),
        "page": Asking("GET", rng.choice(("/", "/static/page.js", "/static/page.css"))),
        "passages": Asking("GET", side.page),
        "runs": Asking("GET", rng.choice(("/v1/runs", side.report))),
        "health": Asking("GET", rng.choice(("/healthz", "/readyz", "/metrics"))),
    }


def change(asking: Asking, rng: Random) -> tuple[Asking, str]:
    """The request changed once, and how."""
    ways = ["target", "header", "method", "raw", "pieces", "leaves", "length"]
    ways += ["tree"] * 14 if isinstance(asking.body, dict) else ["target"] * 6
    way = rng.choice(ways)
    if way == "tree":
        return replace(asking, body=changed_tree(asking.body, rng)), "body"
    if way == "raw":
        return replace(asking, raw=changed_bytes(asking.content, rng)[0]), "bytes of the body"
    if way == "method":
        return replace(asking, method=rng.choice(("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "POST", "X"))), way
    if way == "pieces":
        return replace(asking, pieces=rng.choice((2, 17, 400))), way
    if way == "leaves":
        return replace(asking, leaves=rng.choice((0, 0, 1, 2, 5))), way
    if way == "length":
        length = rng.choice((b"0", b"-1", b"99999999999", b"9" * 5_000, b"1.5", b"\xb2"))
        return replace(asking, headers=(*asking.headers, (b"content-length", length))), way
    if way == "header":
        name = rng.choice(_NAMES)
        value = rng.choice((*_VALUES, *TEXTS)) if rng.random() < 0.8 else rng.choice(TOKENS).decode("latin-1")
        sent = value.encode("utf-8", "surrogatepass").translate(None, b"\r\n\0")[:8_000]
        return replace(asking, headers=(*(one for one in asking.headers if one[0] != name), (name, sent))), f"header {name!r}"
    return replace(asking, target=_target(asking.target, rng)), "target"


_NAMES = (
    *(b"host", b"authorization", b"origin", b"content-type", b"accept", b"transfer-encoding", b"x-forwarded-host", b"cookie"),
    *(b"mcp-protocol-version", b"mcp-session-id", b"last-event-id", b"traceparent", b"range", b"accept-encoding", b"expect"),
)
_VALUES = (
    *(
        "[",
        "[::1",
        "[::1]:99999",
        "127.0.0.1:",
        "127.0.0.1:x",
        "localhost:8000:1",
        "a b",
        "\u2100.com",
        "evil.example",
        "@",
        "//",
    ),
    *("null", "http://[", "http://evil.example", "file:///", "Bearer ", "Bearer gnothi-" + "x" * 40, "Basic \xff", "bearer"),
    *("text/plain", "multipart/form-data; boundary=", "application/json; charset=utf-16", "*/*;q=x", "chunked", "bytes=0-"),
)


def _target(target: str, rng: Random) -> str:
    """Path and query, one piece of them changed."""
    path, mark, query = target.partition("?")
    odd = rng.choice(
        ("..", "%2e%2e", "%00", "%ff", "%2f", "", ".", "%1b%5b2J", "a" * 3_000, "%F0%9F", "*", f"..%2f..%2f{CANARY}")
    )
    if mark and rng.random() < 0.6:
        fields = query.split("&")
        at = rng.randrange(len(fields))
        name = fields[at].partition("=")[0]
        values = ("", "-1", "9" * 4_000, "9" * 5_000, "1e400", "nan", "%C2%B2", "%ff", "0x10", "1_0", odd)
        fields[at] = rng.choice((f"{name}={rng.choice(values)}", name, f"{fields[at]}&{fields[at]}"))
        return path + "?" + "&".join(fields)
    parts = path.split("/")
    at = rng.randrange(1, len(parts))
    parts[at : at + 1] = rng.choice(([odd], [parts[at], odd], [odd, parts[at]], [parts[at] + odd], []))
    return "/" + "/".join(parts).lstrip("/") + mark + query


async def send(side: Side, asking: Asking) -> Reply:
    """As uvicorn would hand it over."""
    path, _, query = asking.target.partition("?")
    headers = {b"host": b"127.0.0.1:8000", b"content-type": b"application/json"}
    if side.key:
        headers[b"authorization"] = b"Bearer " + side.key.encode()
    headers |= dict(asking.headers)
    content, found, over = asking.content, Reply(), asyncio.Event()
    headers.setdefault(b"content-length", str(len(content)).encode())
    size = max(1, -(-len(content) // asking.pieces))
    pieces = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
    got = 0
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": asking.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii", "replace"),
        "query_string": query.encode("ascii", "replace"),
        "root_path": "",
        "headers": list(headers.items()),
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8_000),
        "state": {},
    }

    async def receive() -> dict[str, Any]:
        if asking.leaves == 0 and len(pieces) <= 1:
            over.set()
        elif pieces:
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}
        await over.wait()
        return {"type": "http.disconnect"}

    async def sent(message: Mapping[str, Any]) -> None:
        nonlocal got
        got += 1
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]}
        elif message["type"] == "http.response.body":
            found.body += message.get("body", b"")
            found.whole = not message.get("more_body", False)
        if asking.leaves is not None and got >= asking.leaves:
            over.set()

    try:
        async with asyncio.timeout(patience() if asking.target.partition("?")[0] != "/mcp" or asking.method != "GET" else 0.2):
            await side.app(scope, receive, sent)
    except TimeoutError:
        if asking.method != "GET":  # MCP's stream of news stays open
            raise
    finally:
        over.set()
    return found


async def _good(side: Side) -> str:
    """A good question's answer; its id and links are kept."""
    body = {"model": "gnothi/rag", "messages": [{"role": "user", "content": KNOWN}]}
    found = json.loads((await send(side, Asking("POST", "/v1/chat/completions", body))).body)
    side.answer = found["gnothi"]["id"]
    url = urlsplit(found["citations"][0])
    side.page = f"{url.path}?{url.query}"
    listed = json.loads((await send(side, Asking("GET", "/v1/runs"))).body)
    url = urlsplit(listed["data"][0]["url"])
    side.report = f"{url.path}?{url.query}"
    return str(found["choices"][0]["message"]["content"])


# --- what must not be ------------------------------------------------------------------------------------------------------


def judged(name: str, side: Side, asking: Asking, reply: Reply, folder: Path) -> list[str]:
    text = reply.body.decode("utf-8", "replace")
    problems = []
    if not reply.status and asking.leaves is None and not (name == "mcp" and asking.method == "GET"):
        problems.append("no response")
    if reply.status >= 500 and not (name == "mcp" and asking.leaves == 0):  # its library says so to a client that has gone
        problems.append(f"status {reply.status}")
    if "Traceback (most recent" in text or str(folder) in text or text.strip() == "secret":
        problems.append("tells of the server's inside")
    if side.key and side.key in text:
        problems.append("tells the key")
    if reply.status >= 400 and asking.method != "HEAD" and not text.strip() and asking.leaves is None and name != "mcp":
        problems.append(f"status {reply.status} without a word")
    kind = reply.headers.get("content-type", "")
    if kind.startswith("application/json") and reply.whole and asking.method != "HEAD" and reply.status != 202:
        problems += _json(name, reply, text)
    if (
        kind.startswith("text/event-stream")
        and asking.leaves is None
        and name == "chat"
        and not text.endswith("data: [DONE]\n\n")
    ):
        problems.append("a stream without an end")
    if kind.startswith("text/html") and "content-security-policy" not in reply.headers:
        problems.append("a page without a policy")
    return problems


def _json(name: str, reply: Reply, text: str) -> list[str]:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        body = json.loads(text, parse_constant=refuse)
    except ValueError:
        return ["a body that is not JSON"]
    error = body.get("error") if isinstance(body, dict) else None
    if reply.status >= 400 and name != "mcp" and not (isinstance(error, dict) and str(error.get("message", "")).strip()):
        return [f"status {reply.status} without an error object"]
    return []


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    rng = Random(f"{seed} api {number}")
    side = rng.choice(_SIDES)
    os.chdir(folder / "work")
    WATCH.reports.clear()
    problems: list[str] = []
    name, asking, how, found, log = "?", Asking("GET", "/"), [""], Reply(), io.StringIO()
    WATCH.folder, WATCH.forbidden = (folder / "work").resolve(), CANARY
    try:
        with limited(2 * SECONDS):
            with contextlib.redirect_stderr(io.StringIO()):
                before = _LOOP.run_until_complete(_good(side))
            if before != side.first:
                problems.append("a good question is answered otherwise than at the start")
            every = goods(side, rng)
            name = only or rng.choice(KINDS)
            asking, how = every[name], []
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                asking, one = change(asking, rng)
                how.append(one)
            asking = replace(asking, raw=asking.content)
            with contextlib.redirect_stderr(log):
                found = _LOOP.run_until_complete(send(side, asking))
            log.getvalue().encode()
            if STEERING.search(log.getvalue()):
                problems.append("the log steers the terminal")
            problems += judged(name, side, asking, found, folder)
            _LOOP.run_until_complete(_rest(side, problems))
    except Late as error:
        problems.append(f"hangs: {where(error)}")
    except TimeoutError:
        problems.append("no response within 10 s")
    except BaseException as error:  # noqa: BLE001 - what it is, is the finding
        problems.append(f"traceback: {type(error).__name__} {where(error)}")
    finally:
        WATCH.folder = None
    problems += dict.fromkeys(WATCH.reports)
    return {
        "target": name,
        "command": f"{asking.method} {asking.target[:120]}",
        "changed": [*how, f"{asking.content[:300]!r}", f"{asking.headers!r:.200}"],
        "code": found.status,
        "problems": problems,
        "said": found.body[:200].decode("utf-8", "replace") if found.status >= 400 else "",
    }


async def _rest(side: Side, problems: list[str]) -> None:
    """Nobody is asking any more, shortly after."""
    room = side.context.room
    for _ in range(200):
        if not (room.under_way or room.waiting):
            return
        await asyncio.sleep(0.01)
    problems.append("something is still under way")
