"""A server under mixed load, round after round: clients that leave, bad requests, keys that come and go, an index rebuilt.

A trial is one round with the server of the round before. Where a part of its memory is kept on purpose it is kept small, so
that it fills within the first rounds; what grows after them would never end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

SECONDS = 20.0
"""Of one round's load."""
CLIENTS = 16
QUIET = 15.0
"""Seconds in which what clients left behind is over."""
SETTLED = 10
"""Rounds until what is kept on purpose is full."""
MORE_MB, MORE_HANDLES = 40.0, 4
"""More than in the rounds just after ``SETTLED``: growth."""
_SETUPS = ("direct", "rag", "seakr", "library")
_CONFIG = """
[server]
feedback = "judged.jsonl"
runs = "runs"
keys = "keys.json"
timeout = 60.0
waiting = 200

[model]
prefix_cache_mb = 16

[setups.direct]
method = "direct"

[setups.rag]
method = "rag"

[setups.seakr]
method = "seakr"

[setups.library]
method = "rag"
index = "index"
"""


@dataclass(slots=True)
class Round:
    """What came of one round's requests."""

    requests: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def problem(self, message: str) -> None:
        if message not in self.problems:
            self.problems.append(message)


@dataclass(slots=True)
class Soaked:
    """The server, what it answered at the start, and its figures of every round."""

    work: Path
    process: subprocess.Popen[bytes]
    url: str
    key: str
    questions: list[str]
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    judged: list[str] = field(default_factory=list)
    mb: list[float] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    temporary: str = ""
    initial: frozenset[str] = frozenset()
    """Temporary files of what was answered at the start."""


_SOAKED: list[Soaked] = []
KINDS = ()
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    from benchmarks._lab_runs import lab_questions
    from gnothi.serving import keys

    work = folder / "work"
    (work / "docs").mkdir(parents=True)
    (work / "runs").mkdir()
    _write_docs(work, 0)
    _build(work)
    key = keys.add(work / "keys.json", "soak")
    (work / "server.toml").write_text(_CONFIG, "utf-8")
    temporary = work / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "gnothi", "serve", "--config", "server.toml", "--port", "0"]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=work, stdout=log, stderr=log, env=environment)
    url = _address(process, work)
    questions = [one.text for one in lab_questions(400)]
    soaked = Soaked(work, process, url, key, questions, temporary=str(temporary))
    _SOAKED.append(soaked)
    soaked.answers = asyncio.run(_references(soaked))
    soaked.initial = frozenset(one.name for one in temporary.iterdir())


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:  # noqa: ARG001
    """One round of load, then quiet, then what is left of it."""
    soaked = _SOAKED[-1]
    rng = Random(f"{seed} soak {number}")
    results = asyncio.run(_round(soaked, number, rng))
    if soaked.process.poll() is not None:
        results.problem(f"the server ended: exit code {soaked.process.returncode}")
    else:
        _look(soaked, results)
    requests = sum(results.requests.values())
    told = [f"{requests} requests", *(f"{name} {count}" for name, count in sorted(results.requests.items()))]
    if soaked.mb:
        told += [f"{soaked.mb[-1]:.0f} MB", f"{soaked.handles[-1]} handles"]
    return {
        "target": "server", "command": "serve --config server.toml", "changed": told, "code": soaked.process.poll(),
        "problems": results.problems, "said": _log(soaked.work)[-200:],
    }  # fmt: skip


# --- one round -------------------------------------------------------------------------------------------------------------


async def _round(soaked: Soaked, number: int, rng: Random) -> Round:
    import httpx2

    results = Round()
    until = time.monotonic() + SECONDS
    limits = httpx2.Limits(max_connections=CLIENTS + 4, max_keepalive_connections=CLIENTS)
    headers = {"authorization": f"Bearer {soaked.key}"}
    async with httpx2.AsyncClient(base_url=soaked.url, timeout=90, limits=limits, headers=headers) as http:
        clients = [_client(http, soaked, results, Random(rng.random()), until) for _ in range(CLIENTS)]
        await asyncio.gather(*clients, _changes(http, soaked, results, number))
        await _quiet(http, results)
        asked = rng.sample(sorted(soaked.answers), 12)
        for setup, question in asked:
            answer = (await _chat(http, setup, question)).json()["choices"][0]["message"]["content"]
            if answer != soaked.answers[setup, question]:
                results.problem(f"{setup} answers otherwise than at the start: {answer[:60]!r}")
    return results


async def _client(http: Any, soaked: Soaked, results: Round, rng: Random, until: float) -> None:
    import httpx2

    while time.monotonic() < until:
        name = rng.choice(list(_KINDS))
        try:
            await _KINDS[name](http, soaked, results, rng)
        except httpx2.HTTPError as error:
            results.problem(f"{name}: {type(error).__name__}: {error}"[:160])
            return
        results.requests[name] += 1


def _expect(response: Any, results: Round, name: str, *codes: int) -> bool:
    if response.status_code in codes:
        return True
    results.problem(f"{name}: status {response.status_code}, expected {codes}: {response.text[:120]}")
    return False


async def _chat(http: Any, setup: str, question: str) -> Any:
    messages = [{"role": "user", "content": question}]
    return await http.post("/v1/chat/completions", json={"model": f"gnothi/{setup}", "messages": messages})


async def _whole(http: Any, soaked: Soaked, results: Round, rng: Random) -> None:
    """An answer; where it was asked at the start, the same one."""
    setup, question = rng.choice(_SETUPS), rng.choice(soaked.questions)
    if rng.random() < 0.3:
        setup, question = rng.choice(sorted(soaked.answers))
    response = await _chat(http, setup, question)
    if _expect(response, results, "chat", 200):
        said = response.json()
        results.answers.append(said["gnothi"]["id"])
        known = soaked.answers.get((setup, question))
        if known is not None and said["choices"][0]["message"]["content"] != known:
            results.problem(f"{setup} answers otherwise under load")


async def _streamed(http: Any, soaked: Soaked, results: Round, rng: Random, leave: bool = False) -> None:
    body: dict[str, Any]
    path, body = "/v1/chat/completions", {"messages": [{"role": "user", "content": rng.choice(soaked.questions)}]}
    if rng.random() < 0.5:
        path, body = "/v1/responses", {"input": rng.choice(soaked.questions)}
    asked = {"model": f"gnothi/{rng.choice(_SETUPS)}", "stream": True, **body}
    lines = rng.choice((0, 1, 3)) if leave else None
    async with http.stream("POST", path, json=asked) as stream:
        if stream.status_code != 200:
            results.problem(f"stream: status {stream.status_code}")
            return
        got, last = 0, ""
        async for line in stream.aiter_lines():
            if lines is not None and got >= lines:
                return
            got += 1
            last = line or last
        if lines is None and last != "data: [DONE]" and "response.completed" not in last:
            results.problem(f"a stream ends in {last[:80]!r}")


async def _leaving(http: Any, soaked: Soaked, results: Round, rng: Random) -> None:
    """Within a stream, or before a whole answer is there."""
    if rng.random() < 0.5:
        return await _streamed(http, soaked, results, rng, leave=True)
    asking = asyncio.ensure_future(_chat(http, rng.choice(_SETUPS), rng.choice(soaked.questions)))
    await asyncio.wait({asking}, timeout=rng.uniform(0, 0.5))
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    return None


async def _judging(http: Any, soaked: Soaked, results: Round, rng: Random) -> None:
    if not results.answers:
        return await _whole(http, soaked, results, rng)
    name = results.answers.pop()
    response = await http.post("/v1/feedback", json={"id": name, "right": rng.random() < 0.5})
    if _expect(response, results, "feedback", 200):
        results.judged.append(name)
    return None


async def _searching(http: Any, soaked: Soaked, results: Round, rng: Random) -> None:
    body: Mapping[str, Any] = {"model": f"gnothi/{rng.choice(('rag', 'library'))}", "query": "ferry at noon", "k": 3}
    path = "/v1/search"
    if rng.random() < 0.5:
        path, body = "/v1/know", {"model": "gnothi/seakr", "question": rng.choice(soaked.questions)}
    _expect(await http.post(path, json=body), results, path, 200)


async def _looking(http: Any, _: Soaked, results: Round, rng: Random) -> None:
    path = rng.choice(("/", "/v1/models", "/v1/runs", "/metrics", "/healthz", "/static/page.js"))
    _expect(await http.get(path), results, path, 200)


async def _bad(http: Any, soaked: Soaked, results: Round, rng: Random) -> None:
    question = rng.choice(soaked.questions)
    asked: tuple[bytes | dict[str, Any], str, int] = rng.choice(
        (
            (b'{"a":' * 500, soaked.key, 400),
            ({"model": "gnothi/nobody", "messages": [{"role": "user", "content": question}]}, soaked.key, 404),
            ({"model": "gnothi/rag", "messages": [{"role": "user", "content": "x" * 9_000}]}, soaked.key, 400),
            (b" " * 600_000, soaked.key, 413),
            ({"model": "gnothi/rag", "messages": [{"role": "user", "content": question}]}, "gn-nobody", 401),
        )
    )
    body, key, code = asked
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    _expect(await http.post("/v1/chat/completions", content=content, headers=headers), results, "a bad request", code)


_KINDS = {
    "whole": _whole, "streamed": _streamed, "left": _leaving, "judged": _judging, "searched": _searching,
    "looked": _looking, "refused": _bad,
}  # fmt: skip


async def _changes(http: Any, soaked: Soaked, results: Round, number: int) -> None:
    """Amid the load: the index of ``library`` is built again from other documents, a key is made, used and revoked."""
    from gnothi.serving import keys

    await asyncio.sleep(SECONDS / 4)
    _write_docs(soaked.work, number + 1)
    await asyncio.to_thread(_build, soaked.work)
    file, name = soaked.work / "keys.json", f"guest{number}"
    key = await asyncio.to_thread(keys.add, file, name)
    for revoked in (False, True):
        if revoked:
            await asyncio.to_thread(keys.revoke, file, name)
        await asyncio.sleep(2)  # the file is looked at once a second
        response = await http.get("/v1/models", headers={"authorization": f"Bearer {key}"})
        _expect(response, results, "a key that is revoked" if revoked else "a new key", 401 if revoked else 200)


async def _quiet(http: Any, results: Round) -> None:
    """Nothing is under way or waiting soon after the last client has gone."""
    until = time.monotonic() + QUIET
    while True:
        text = (await http.get("/metrics")).text.splitlines()
        names = ("gnothi_questions_under_way ", "gnothi_questions_waiting ")
        left = [line for line in text if line.startswith(names) and float(line.split()[1]) > 0]
        if not left:
            return
        if time.monotonic() > until:
            results.problem(f"clients have gone, yet {left}")
            return
        await asyncio.sleep(0.2)


# --- what is left of it ------------------------------------------------------------------------------------------------------


def _look(soaked: Soaked, results: Round) -> None:
    """Memory and handles beside those of the rounds just after the caches were full; judgements, the log, files left over."""
    status = Path(f"/proc/{soaked.process.pid}/status").read_text()
    soaked.mb.append(int(status.split("RssAnon:")[1].split()[0]) / 1024)
    soaked.handles.append(len(list(Path(f"/proc/{soaked.process.pid}/fd").iterdir())))
    if len(soaked.mb) >= SETTLED + 8:
        for what, figures, more in (("memory", soaked.mb, MORE_MB), ("handles", soaked.handles, MORE_HANDLES)):
            before, now = (statistics.median(map(float, some)) for some in (figures[SETTLED : SETTLED + 4], figures[-4:]))
            if now > before + more:
                results.problem(f"{what} grow: {before:.0f} after {SETTLED} rounds")
    soaked.judged += results.judged
    kept: Counter[str] = Counter()
    if soaked.judged:
        for line in (soaked.work / "judged.jsonl").read_text("utf-8").splitlines():
            kept[json.loads(line)["answer_id"]] += 1
    if lost := sum(not kept[one] for one in soaked.judged):
        results.problem(f"{lost} acknowledged judgements are lost")
    if any(times > 1 for times in kept.values()):
        results.problem("judgements are kept twice")
    if "Traceback (most recent" in _log(soaked.work):
        results.problem("a traceback in the server's log")
    if left := [one.name for one in Path(soaked.temporary).iterdir() if one.name not in soaked.initial]:
        results.problem(f"files left over: {left[:3]}")


def _log(work: Path) -> str:
    return (work / "log").read_text("utf-8", "replace")


async def _references(soaked: Soaked) -> dict[tuple[str, str], str]:
    """What is answered before anything else; ``library`` changes with its index."""
    import httpx2

    results = {}
    headers = {"authorization": f"Bearer {soaked.key}"}
    async with httpx2.AsyncClient(base_url=soaked.url, timeout=90, headers=headers) as http:
        for question in soaked.questions[:16]:
            for setup in _SETUPS[:3]:
                said = (await _chat(http, setup, question)).json()
                results[setup, question] = str(said["choices"][0]["message"]["content"])
    return results


def _write_docs(work: Path, number: int) -> None:
    for one in range(20):
        text = f"The ferry {one} of dunmere sails at noon on day {number}.\n\n" * 20
        (work / "docs" / f"{one}.txt").write_text(text, "utf-8")


def _build(work: Path) -> None:
    command = [sys.executable, "-m", "gnothi", "index", "build", "docs", "--out", "index"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the index is not built: {done.stderr}")


def _address(process: subprocess.Popen[bytes], work: Path) -> str:
    until = time.monotonic() + 90
    while time.monotonic() < until and process.poll() is None:
        for word in _log(work).split():
            if word.startswith("http://127.0.0.1:"):
                return word.rstrip("/.,").removesuffix("/v1")
        time.sleep(0.1)
    process.kill()
    raise RuntimeError(f"the server does not start: {_log(work)}")
