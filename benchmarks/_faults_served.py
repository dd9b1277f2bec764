"""A server that is killed and asked to end while clients judge its answers: what it acknowledged is kept, each once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_own_time as own_time
from benchmarks._faults_programs import SECONDS, ProgramExit, Tally, output_of, started

_COMMAND = "serve --method direct --port 0 --set server.feedback=judged.jsonl"
_ROUNDS = 6
_QUESTIONS = [f"What is the birthplace of person {number}?" for number in range(6)]


def served(rng: Random, work: Path) -> tuple[Tally, ProgramExit]:
    """Judgements are posted by three clients when the server is stopped, some times before it is ready."""
    taken: list[str] = []
    tally = Tally()
    code = 0
    for round_ in range(_ROUNDS):
        how = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        early, after = rng.random() < 0.15, rng.uniform(0.05, 0.8)
        process = started(_COMMAND, work)
        over = threading.Event()
        clients: list[threading.Thread] = []
        before = len(taken)
        try:
            if not early:
                address = _address(process, work)
                clients = [
                    threading.Thread(target=_client, args=(address, taken, over, Random(rng.random()))) for _ in range(3)
                ]
                for client in clients:
                    client.start()
            if not _busy(process, after):
                tally.problems.append("the clients are not answered")
            process.send_signal(how)
            seconds = own_time.wait(partial(_ended, process), process.pid, 10 * SECONDS)
            over.set()
            if seconds is None:
                tally.problems.append(f"{how.name}: does not end")
                break
            code = process.wait()
            for client in clients:
                client.join(30)
            tally.kills += how == signal.SIGKILL
            when = f"after {after:.2f} s{' of its start' if early else ''}, {len(taken) - before} judgements acknowledged"
            tally.log.append(f"{how.name} {when}: exit code {code}, {seconds:.1f} s later")
            if how != signal.SIGKILL:
                tally.signals.append(round(seconds, 2))
                tally.problems += [f"{how.name}: {one}" for one in _judged(how, code, seconds, output_of(work), early)]
            tally.problems += [f"{how.name}: {one}" for one in own_time.survivors(process.pid)]
        finally:
            over.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        tally.problems += _kept(work / "judged.jsonl", taken, round_)
    if not taken:
        tally.problems.append("no judgement was acknowledged: nothing is tried")
    return tally, ProgramExit(0, output_of(work))


def _busy(process: Any, seconds: float) -> bool:
    """Whether it spends so many seconds of processors from now on, or ends."""
    until = own_time.spent(process.pid) + seconds
    waited = own_time.wait(lambda: _ended(process) or own_time.spent(process.pid) >= until, process.pid, 60)
    return waited is not None


def _ended(process: Any) -> bool:
    return process.poll() is not None


def _judged(how: int, code: int, seconds: float, words: str, early: bool) -> list[str]:
    problems = []
    if code not in (0, 128 + how) and not early:
        problems.append(f"ends the server in exit code {code}")
    if seconds > SECONDS:
        problems.append("does not end soon")
    if "Traceback (most recent" in words:
        problems.append("traceback")
    return problems


def _kept(file: Path, taken: list[str], round_: int) -> list[str]:
    from gnothi.calibration.feedback import read

    problems = []
    kept: Counter[str] = Counter()
    lines = [line for line in file.read_bytes().split(b"\n") if line] if file.is_file() else []
    for number, line in enumerate(lines):
        try:
            kept[json.loads(line)["answer_id"]] += 1
        except ValueError:
            if number != len(lines) - 1:
                problems.append(f"round {round_}: a line of the feedback in the midst is torn")
    if lost := [one for one in taken if not kept[one]]:
        problems.append(f"{len(lost)} acknowledged judgements are lost")
    if twice := [one for one, times in kept.items() if times > 1]:
        problems.append(f"{len(twice)} judgements are kept twice")
    if lines:
        list(read(file))
    return problems


def _address(process: Any, work: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        for word in output_of(work).split():
            if word.startswith("http://127.0.0.1:"):
                return word.rstrip("/.,").removesuffix("/v1")
        time.sleep(0.05)
    raise RuntimeError(f"the server does not start: {output_of(work)}")


def _client(address: str, taken: list[str], over: threading.Event, rng: Random) -> None:
    def post(path: str, body: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(
            address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read())

    with contextlib.suppress(OSError, urllib.error.URLError, ValueError):
        while not over.is_set():
            message = {"role": "user", "content": f"{rng.choice(_QUESTIONS)} {rng.random()}"}
            answer = post("/v1/chat/completions", {"model": "direct", "messages": [message], "max_tokens": 8})
            name = answer["gnothi"]["id"]
            post("/v1/feedback", {"id": name, "right": rng.random() < 0.5})
            taken.append(name)
