"""Two processes at one thing: the first is stopped amid its work, the second runs, the first goes on. Each works, or is refused
at once and told who holds what; what is there in the end is what the first makes alone, or what the two would make in turn."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import _faults_killed as killed
from benchmarks._faults_killed import JOBS, Job

_AT_ONCE = 2.0
"""Seconds for a refusal."""
_MODEL = ("--model", "lab", "--index", "index")
_REBUILD = ("index", "build", "docs", "more", "--out", "index")
_UTILITY = ("train", "utility-reference", "sets/plain.jsonl", "--model", "lab", "--index", "lab", "--out", "made")


@dataclass(frozen=True, slots=True)
class Pair:
    """``first`` and ``second``, who meet; ``refused``: one writer at a time is promised. ``held`` is said in the refusal."""

    first: Job
    second: tuple[str, ...]
    refused: bool = False
    held: str = "It is held by process"


def _labels() -> Any:
    import json

    lines = map(json.loads, Path("made/labels.jsonl").read_text("utf-8").splitlines())
    return [(line["question_id"], line["judged"]) for line in lines]


def _rebuilt() -> Any:
    from gnothi.retrieval.bm25 import BM25Index

    return sorted((one.id, one.text) for one in BM25Index.open("index").passages())


_EVAL = Job(("eval", "sets/plain.jsonl", "--method", "direct,rag", *_MODEL, "--out", "made"), ("report", "made"), killed._rows)
_LABELLING = Job(_UTILITY, ("list", "methods"), _labels)
_BUILD = Job(_REBUILD, ("index", "search", "index", "heron"), _rebuilt)
_OTHER = ("eval", "sets/plain.jsonl", "--method", "direct", *_MODEL, "--out", "other")
PAIRS: Mapping[str, Pair] = {
    "index build, index build": Pair(JOBS["index"], JOBS["index"].command, True),
    "index build, index search": Pair(_BUILD, ("index", "search", "index", "heron")),
    "index build, index delete": Pair(_BUILD, ("index", "delete", "index", "docs/a.txt"), True),
    "index build, ask": Pair(_BUILD, ("ask", "Who?", "--method", "rag", *_MODEL)),
    "index build, eval": Pair(_BUILD, _OTHER),
    "graph build, graph build": Pair(JOBS["graph"], JOBS["graph"].command, True),
    "graph build, index info": Pair(JOBS["graph"], ("index", "info", "made")),
    "eval, eval": Pair(_EVAL, _EVAL.command, True),
    "eval, eval of other settings": Pair(_EVAL, (*_EVAL.command, "--seed", "7"), True),
    "eval, report": Pair(_EVAL, ("report", "made")),
    "eval, report as a page": Pair(_EVAL, ("report", "made", "--html", "page.html")),
    "eval, export": Pair(_EVAL, ("export", "made", "--to", "jsonl", "--out", "exported")),
    "eval, calibrate of its run": Pair(_EVAL, ("calibrate", "made", "--signal", "gram", "--out", "cal2.toml")),
    "eval, eval elsewhere": Pair(_EVAL, _OTHER),
    "eval, index build of its index": Pair(_EVAL, ("index", "build", "docs", "--out", "index")),
    "calibrate, calibrate": Pair(JOBS["calibrate"], JOBS["calibrate"].command, True),
    "train, train": Pair(_LABELLING, _UTILITY, True),
    "export, export": Pair(JOBS["export"], JOBS["export"].command),
}
KINDS = tuple(PAIRS)
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:
    killed.prepare(folder, only)
    more = folder / "seeds" / "more"
    more.mkdir()
    for number in range(12):
        (more / f"{number}.txt").write_text(f"The heron of pond {number} eats plums.\n" * 3, "utf-8")


_alone: dict[str, tuple[Any, int]] = {}


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    rng = Random(f"{seed} together {number}")
    name = only or list(PAIRS)[number % len(PAIRS)]
    pair = PAIRS[name]
    if name not in _alone:
        killed.fresh(folder)
        done = killed.run(pair.first.command)
        if done.code:
            raise RuntimeError(f"{name}: {done}")
        _alone[name] = killed.content(pair.first), int(done.out.rpartition("\n")[2])
    expected, events = _alone[name]
    killed.fresh(folder)
    at = rng.randint(1, events)
    pid, pipe = killed._start(pair.first.command, lambda: killed._arm(at, signal.SIGSTOP))
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        os.close(pipe)
        return killed.row(name, pair.first, ["had ended"], killed.run(pair.second), [])
    began = time.monotonic()
    second = killed.run(pair.second)
    seconds = time.monotonic() - began
    os.kill(pid, signal.SIGCONT)
    first = killed._end(pid, pipe)
    problems = [*second.problems, *(first.problems if first else ("the first dies",))]
    outcome = "works" if second.code == 0 else "refused"
    if second.code:
        if pair.refused and pair.held not in second.err and at > 1 and "held" in second.err:
            problems.append("the second is refused and not told by whom")
        if seconds > _AT_ONCE:
            problems.append(f"the second is refused after {seconds:.0f} s")
    if first is not None and first.code:
        outcome += f", the first ends in exit code {first.code}"
        last = killed.run(pair.first.command)
        problems += last.problems
        if last.code and not (not second.code and "was made with" in last.err):
            problems.append(f"the first fails, and does not go on: exit code {last.code}")
    changed = pair.second[:2] == ("index", "delete") or (not second.code and "other settings" in name)
    if not changed and not killed.same(pair.first, expected):
        problems.append("ends in something else than alone")
    told = [f"stopped at change {at} of {events}", outcome, (second.err.strip().splitlines() or [""])[-1][:160]]
    return killed.row(name, pair.first, told, second, problems)
