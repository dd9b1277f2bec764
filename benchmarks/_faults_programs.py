"""SIGKILL, SIGTERM and Ctrl-C at random moments of whole commands and their models: trainings, vectors, workers, a server.

Unlike ``killed`` and ``stopped``, each command is a program of its own, and the moment is one of time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._faults_killed import fresh, rows_of
from benchmarks._faults_trial import STEERING
from gnothi.training.finetuning import HEADER, METRICS

_PATIENCE = 5.0
"""Seconds in which a command ends that is asked to, on shared cores."""
_DEAF = 4.0
"""Seconds in which a program may not have begun to hear signals other than SIGKILL: Python starts, and imports."""
_START = "import sys; from gnothi.cli.main import main; main(sys.argv[1:])"
# An untrained model never ends its replies, which makes the calibration after its training slow.
_UNTRAINED = "from gnothi.lab import training; training.calibrate = lambda *_: {}; "
_TRAINED = (METRICS, HEADER, "model.safetensors")


@dataclass(frozen=True, slots=True)
class Program:
    """A command that writes ``made``, and what of it is the same at the end: ``files``, or what ``content`` reads."""

    command: str
    files: Sequence[str] = ()
    content: Callable[[Path], Any] | None = None
    start: str = _START

    def found(self) -> Any:
        if self.content is not None:
            return repr(self.content(Path("made")))
        return {name: hashlib.sha256((Path("made") / name).read_bytes()).hexdigest() for name in self.files}


def _cached(run: Path) -> Any:
    return rows_of(run)[1]


def _vectors(_: Path) -> Any:
    from gnothi.retrieval.dense.index import DenseIndex

    found = asyncio.run(DenseIndex.open("index").search("ferry at noon", 20))
    return [(hit.passage.id, round(hit.score, 5)) for hit in found]


def _examined(folder: Path) -> Any:
    """States differ in their last digits by what else was under way."""
    lines = map(json.loads, (folder / "findings.jsonl").read_text("utf-8").splitlines())
    return [(line["question_id"], line["answer"], line["wrong"]) for line in lines], (folder / "probe.npz").is_file()


_SELF = "--set steps=4 --set questions=4 --set replies=4 --set warm_start_steps=2 --set evaluate_every=2 --set answers.n=4"
_READER = "--set steps=6 --set batch=8 --set rows=4 --set evaluate_every=2 --set k=1 --set learning_rate=1e-3"
_RERANKER = "--set learning_rate=1e-3 --set epochs=2 --set batch=32 --set evaluate_every=5"
_TINY = "--set steps=12 --set hidden=64 --set layers=2 --set heads=4 --set intermediate=16 --set rows=2 --set width=64"
PROGRAMS: Mapping[str, Program] = {
    "train self-knowledge": Program(
        f"train self-knowledge lab-train:one_hop --limit 24 {_SELF} --out made", (*_TRAINED, "answers/answers.jsonl")
    ),
    "train reader": Program(f"train reader lab-train:choice --limit 40 {_READER} --out made", _TRAINED),
    "train reranker": Program(f"train reranker lab-train:two_hop_choice --limit 30 {_RERANKER} --out made", _TRAINED),
    "train utility-reference": Program("train utility-reference lab-train --limit 24 --out made", ("labels.jsonl",)),
    "train probe": Program("train probe lab-train --limit 60 --out made", content=_examined),
    "lab train": Program(f"lab train {_TINY} --out made", ("model.safetensors",), start=_UNTRAINED + _START),
    "index embed": Program("index embed index --encoder ./encoder", content=_vectors),
    "eval with workers": Program("eval lab --method direct,rag --limit 24 --workers 2 --out made", content=rows_of),
    "eval with a cache": Program("eval lab --method cot,rag --limit 24 --cache --out made", content=_cached),
    "serve with feedback": Program("serve --port 0"),
}


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    from tests.filtering.encoder import tiny_encoder

    seeds = folder / "seeds"
    docs = seeds / "docs"
    docs.mkdir(parents=True)
    for number in range(12):
        lines = "".join(f"The ferry {number} of dunmere {line} sails at noon.\n\n" for line in range(40))
        (docs / f"{number}.txt").write_text(lines, "utf-8")
    tiny_encoder(seeds / "encoder")
    done = _run("index build docs --out index", seeds)
    if done.code:
        raise RuntimeError(done.said)


_expected: dict[str, tuple[Any, float]] = {}


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """Stopped once or twice, then to the end."""
    rng = Random(f"{seed} programs {number}")
    name = only or rng.choice(list(PROGRAMS))
    program = PROGRAMS[name]
    work = folder / "work"
    if name == "serve with feedback":
        fresh(folder)
        return _row(name, program, *_served(rng, work))
    if name not in _expected:
        fresh(folder)
        began = time.monotonic()
        done = _run(program.command, work, program.start)
        if done.code:
            raise RuntimeError(f"{name}: {done.said}")
        _expected[name] = program.found(), time.monotonic() - began
    expected, seconds = _expected[name]
    fresh(folder)
    told: list[str] = []
    problems: list[str] = []
    for _ in range(rng.choice((1, 1, 2))):
        how = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        after = rng.uniform(0.0 if how == signal.SIGKILL else _DEAF, max(seconds, _DEAF + 1))
        done = _run(program.command, work, program.start, how, after)
        told.append(f"{how.name} after {after:.1f} s: exit code {done.code}, {done.seconds:.1f} s later")
        problems += done.problems
    last = _run(program.command, work, program.start)
    problems += last.problems
    if last.code:
        problems.append(f"does not go on: exit code {last.code}: {last.said[-200:]}")
    else:
        try:
            if program.found() != expected:
                problems.append("ends in something else than undisturbed")
        except Exception as error:  # noqa: BLE001 - whatever it is, it cannot be read
            problems.append(f"not readable: {error!r}")
    return _row(name, program, told, last.code, last.said, problems)


def _row(name: str, program: Program, told: list[str], code: int, said: str, problems: list[str]) -> dict[str, Any]:
    last = (said.strip().splitlines() or [""])[-1][:200]
    found = list(dict.fromkeys(problems))
    return {"target": name, "command": program.command, "changed": told, "code": code, "problems": found, "said": last}


# --- programs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """``seconds`` from the signal to the end, ``problems`` of that."""

    code: int
    said: str
    seconds: float = 0.0
    problems: tuple[str, ...] = ()


def _started(command: str, work: Path, start: str = _START) -> subprocess.Popen[bytes]:
    environment = os.environ | {"GNOTHI_CACHE": str(work / "cache"), "PYTHONUNBUFFERED": "1"}
    said = (work / "said").open("wb")
    with said:
        return subprocess.Popen(
            [sys.executable, "-c", start, *command.split()],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,  # as at a terminal
        )


def _run(command: str, work: Path, start: str = _START, how: int = 0, after: float = 0.0) -> Done:
    process = _started(command, work, start)
    try:
        if not how:
            code = process.wait(300)
            return Done(code, _said(work), 0.0, tuple(_left(process.pid)) if code == 0 else ())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
        if process.poll() is not None:
            return Done(process.returncode, _said(work))
        process.send_signal(how)
        began = time.monotonic()
        code = process.wait(60)
        seconds = time.monotonic() - began
        return Done(code, _said(work), seconds, tuple(_judged(how, code, seconds, _said(work), process.pid)))
    except subprocess.TimeoutExpired:
        return Done(-1, _said(work), 0.0, ("does not end",))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _judged(how: int, code: int, seconds: float, said: str, group: int) -> list[str]:
    name = signal.Signals(how).name
    problems = []
    if how != signal.SIGKILL:
        if code not in (0, 128 + how, -how if _over(said) else 0):
            problems.append(f"{name} ends in exit code {code}")
        if code == 128 + how and "same command" not in " ".join(said.split()):
            problems.append(f"{name}: not said how to go on")
        if seconds > _PATIENCE:
            problems.append(f"{name}: does not end soon")
        if "Traceback (most recent" in said:
            problems.append(f"{name}: traceback")
        if STEERING.search(said.replace("\x1b", "").replace("\r", "")):
            problems.append(f"{name}: steers the terminal")
    return problems + [f"{name}: {one}" for one in _left(group)]


def _over(said: str) -> bool:
    """Its results are printed: Python was about to end, and no longer hears signals itself."""
    return bool(said.strip()) and not said.rstrip().endswith("...")


def _left(group: int) -> list[str]:
    """Processes of the session that outlive it by two seconds."""
    until = time.monotonic() + 2
    while True:
        left = []
        for one in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (one / "stat").read_text().rpartition(") ")[2].split() if one.name.isdigit() else []
                if fields and int(fields[3]) == group and fields[0] != "Z":
                    left.append(one.name)
        if not left:
            return []
        if time.monotonic() > until:
            return [f"leaves {len(left)} processes"]
        time.sleep(0.1)


def _said(work: Path) -> str:
    return (work / "said").read_text("utf-8", "replace")


# --- the server ----------------------------------------------------------------------------------------------------------

_QUESTIONS = [f"What is the birthplace of person {number}?" for number in range(6)]


def _served(rng: Random, work: Path) -> tuple[list[str], int, str, list[str]]:
    """Judgements are posted by four clients when the server is killed, twice; then what it acknowledged is counted."""
    from gnothi.calibration.feedback import read

    taken: list[str] = []
    told, problems = [], []
    command = "serve --method direct --port 0 --set server.feedback=judged.jsonl"
    for round_ in range(2):
        process = _started(command, work)
        try:
            address = _address(process, work)
            over = threading.Event()
            clients = [threading.Thread(target=_client, args=(address, taken, over, Random(rng.random()))) for _ in range(4)]
            for client in clients:
                client.start()
            how = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
            before, after = len(taken), rng.uniform(0.3, 4.0)
            time.sleep(after)
            process.send_signal(how)
            over.set()
            code = process.wait(60)
            for client in clients:
                client.join(30)
            told.append(f"{how.name} after {after:.1f} s, {len(taken) - before} judgements acknowledged: exit code {code}")
            if how == signal.SIGTERM and code != 0:
                problems.append(f"SIGTERM ends the server in exit code {code}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        lines = [line for line in (work / "judged.jsonl").read_bytes().split(b"\n") if line]
        kept: Counter[str] = Counter()
        for number, line in enumerate(lines):
            try:
                kept[json.loads(line)["id"]] += 1
            except ValueError:
                if number != len(lines) - 1:
                    problems.append(f"round {round_}: a line of the feedback in the midst is torn")
        if lost := [one for one in taken if not kept[one]]:
            problems.append(f"{len(lost)} acknowledged judgements are lost")
        if twice := [one for one, times in kept.items() if times > 1]:
            problems.append(f"{len(twice)} judgements are kept twice")
        list(read(work / "judged.jsonl"))
    return told, 0, _said(work), problems


def _address(process: subprocess.Popen[bytes], work: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        for word in _said(work).split():
            if word.startswith("http://127.0.0.1:"):
                return word.rstrip("/.,")
        time.sleep(0.05)
    raise RuntimeError(f"the server does not start: {_said(work)}")


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
