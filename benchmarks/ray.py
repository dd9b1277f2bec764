"""What does a cluster cost? The same run on this machine without Ray, with one actor of it, and with two.

    python -m benchmarks ray --out SCRATCH [--questions 1000] [--methods direct,seakr] [--repeats 3]

Each run is `gnothi eval lab` as a whole process, all else by default, with one thread of tensor operations a process and, as
Gnothi has it, Ray's workers at no lower priority (Ray's default, nice 15, is most of the cost on a busy machine). Rounds
alternate: local, one actor, two actors, each round begun by another. ``asked`` is the time from the first question to the last
answer, as the run notes it (``pace.jsonl``), ``all`` includes starting Python, Ray and the model. Processor seconds are those
of all processes that the run started, looked at ten times a second; those of Ray's own servers are also told alone: they take
a little as long as they run, however little is asked. Rows are compared with those of a local run.

What is measured is kept in --out: the same command goes on.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks._shared import ROOT, arguments, as_json, machine, publish, ratios, say, spread, table

LOCAL, ONE, TWO = "local", "1 actor", "2 actors"
CONTENDERS: Mapping[str, tuple[str, ...]] = {
    LOCAL: (),
    ONE: ("--on", "ray", "--workers", "1"),
    TWO: ("--on", "ray", "--workers", "2"),
}
MOST = 1.10
MARK = "BENCHMARK_OF_RAY"
_PAUSE = 0.1
_SERVERS = (b"/ray/core/", b"/ray/_private/", b"/ray/autoscaler/", b"/ray/dashboard/")


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the clock and of processors, for the whole run and while questions were asked."""

    all_s: float
    asked_s: float
    all_cpu_s: float
    asked_cpu_s: float
    asked_servers_cpu_s: float
    """Of these, what Ray's own servers took."""
    differing: int
    """Rows that are not those of the local run."""


# --- processor time of all that a run starts --------------------------------------------------------------------------


class Processors:
    """What processes took whose environment bears the mark, over time: processes of Ray end up with other parents."""

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._ours: dict[int, float] = {}
        self._servers: set[int] = set()
        self._others: set[int] = set()
        self.times: list[float] = []
        self.samples: list[tuple[float, float]] = []
        """All, and Ray's own servers."""

    def look(self) -> None:
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in self._others:
                self._note(int(name))
        self.times.append(time.time())
        servers = sum(taken for pid, taken in self._ours.items() if pid in self._servers)
        self.samples.append((sum(self._ours.values()), servers))

    def until(self, moment: float) -> tuple[float, float]:
        """CPU seconds that were taken until then."""
        place = bisect.bisect_left(self.times, moment)
        if place in (0, len(self.times)):
            return self.samples[min(place, len(self.times) - 1)]
        before, after = self.times[place - 1], self.times[place]
        share = (moment - before) / (after - before)
        one, two = (a + share * (b - a) for a, b in zip(self.samples[place - 1], self.samples[place], strict=True))
        return one, two

    def _note(self, pid: int) -> None:
        folder = Path("/proc", str(pid))
        try:
            if pid not in self._ours:
                environment = (folder / "environ").read_bytes()
                if self._mark not in environment.split(b"\0"):
                    # One that is only about to become another has its parent's environment, or, for a moment, none.
                    if environment and (folder / "exe").exists():
                        self._others.add(pid)
                    return
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes()
        except OSError:
            return  # it has ended
        self._ours[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if is_server(words):
            self._servers.add(pid)
        else:
            self._servers.discard(pid)  # a worker of Ray's that became an actor


def is_server(words: bytes) -> bool:
    """Of a command line: whether it is a process of Ray's that answers no questions (an actor bears the name of its class)."""
    return not words.startswith(b"ray::Host") and (words.startswith(b"ray::") or any(one in words for one in _SERVERS))


# --- one run ----------------------------------------------------------------------------------------------------------


def measure(method: str, contender: str, questions: int, out: Path, beside: Path) -> Measured:
    """Raises SystemExit where the run fails."""
    shutil.rmtree(out, ignore_errors=True)
    mark = secrets.token_hex(8)
    alike = {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    alike["RAY_ADDRESS"] = "local"  # a cluster of its own
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    command = [sys.executable, "-m", "gnothi", "eval", "lab", "--method", method, "--limit", str(questions), "--out", str(out)]
    watch, began = Processors(mark), time.perf_counter()
    with out.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(
            [*command, *CONTENDERS[contender]],
            env={**os.environ, **alike, "PYTHONPATH": path, MARK: mark},
            stdout=log,
            stderr=log,
        )
        while process.poll() is None:
            watch.look()
            time.sleep(_PAUSE)
    seconds = time.perf_counter() - began
    watch.look()
    if process.returncode:
        raise SystemExit(f"{method}, {contender}: exit code {process.returncode}; see {out.with_suffix('.log')}")
    pace = json.loads((out / "pace.jsonl").read_text())
    ended = (out / "pace.jsonl").stat().st_mtime
    asked, servers = (b - a for a, b in zip(watch.until(ended - pace["seconds"]), watch.until(ended), strict=True))
    return Measured(seconds, pace["seconds"], watch.samples[-1][0], asked, servers, differing(out, beside))


def differing(run: Path, other: Path) -> int:
    """Rows of one run that are not in the other, but for seconds and the last digit of a number: prompts that are read together
    with others give other last digits."""
    from gnothi.runs.folder import read_rows

    one, two = ({row.key: row for row in read_rows(path)} for path in (run, other))
    return sum(key not in one or key not in two or not one[key].agrees(two[key]) for key in {*one, *two})


# --- all of them ------------------------------------------------------------------------------------------------------


def rounds_of(method: str, args: argparse.Namespace) -> list[dict[str, Measured]]:
    """What is kept in the folder is not measured again."""
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{method}-{args.questions}.jsonl"
    found: list[dict[str, Measured]] = []
    if kept.exists():
        found = [
            {name: Measured(**one) for name, one in json.loads(line).items()} for line in kept.read_text("utf-8").splitlines()
        ]
    names = list(CONTENDERS)
    local = folder / f"{method}-local"
    for number in range(len(found), args.repeats):
        first = number % len(names)
        one: dict[str, Measured] = {}
        for name in (*names[first:], *names[:first]):
            out = folder / f"{method}-{name.replace(' ', '-')}"
            if name != LOCAL and not local.exists():  # what its rows are compared with
                measure(method, LOCAL, args.questions, local, local)
            one[name] = measure(method, name, args.questions, out, local)
            say(f"  {method}, round {number + 1}, {name}: {one[name]}")
        found.append({name: one[name] for name in names})
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps({name: asdict(measured) for name, measured in found[-1].items()}) + "\n")
    return found[: args.repeats]


def summary(rounds: Sequence[Mapping[str, Measured]]) -> dict[str, Any]:
    whats = ("asked_s", "all_s", "asked_cpu_s", "all_cpu_s")
    costs = {what: [{name: getattr(one, what) for name, one in row.items()} for row in rounds] for what in whats}
    costs["asked_own_cpu_s"] = [
        {name: one.asked_cpu_s - one.asked_servers_cpu_s for name, one in row.items()} for row in rounds
    ]
    return {
        "costs": {what: {name: spread(row[name] for row in rows) for name in CONTENDERS} for what, rows in costs.items()},
        "of_local": {what: {name: ratios(rows, name, LOCAL) for name in (ONE, TWO)} for what, rows in costs.items()},
        "second_actor": {what: ratios(rows, ONE, TWO) for what, rows in costs.items()},
        "differing": max(one.differing for row in rounds for one in row.values()),
    }


def targets(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """What issue 19 asks for."""
    return {
        f"{method}: one actor at most {MOST:g} x local while asked": one["of_local"]["asked_s"][ONE].median <= MOST
        for method, one in figures.items()
    } | {f"{method}: rows as without Ray": not one["differing"] for method, one in figures.items()}


def lines(figures: Mapping[str, Mapping[str, Any]], args: argparse.Namespace) -> list[str]:
    said = {"asked_s": "asked, s", "all_s": "all, s", "asked_cpu_s": "asked, CPU s", "all_cpu_s": "all, CPU s"}
    said["asked_own_cpu_s"] = "asked, CPU s without Ray's servers"
    out = [f"{args.questions} questions of the laboratory; medians of {args.repeats} alternating rounds (least - greatest)"]
    for method, one in figures.items():
        rows = [
            [said[what], *(str(costs[name]) for name in CONTENDERS)]
            + [str(one["of_local"][what][name]) for name in (ONE, TWO)]
            + [str(one["second_actor"][what])]
            for what, costs in one["costs"].items()
        ]
        header = [method, *CONTENDERS, "1 actor / local", "2 actors / local", "1 actor / 2 actors"]
        out += ["", *table(header, rows), f"rows that differ from the local run's, at most: {one['differing']}"]
    return [*out, "", *(f"{'met    ' if met else 'NOT MET'} {target}" for target, met in targets(figures).items())]


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=3, threads=None)
    parser.add_argument("--out", required=True, help="where to work, and to go on")
    parser.add_argument("--questions", type=int, default=1000, help="of the laboratory [%(default)s]")
    parser.add_argument("--methods", default="direct,seakr", help="separated by commas [%(default)s]")
    args = parser.parse_args(argv)
    found = {method: summary(rounds_of(method, args)) for method in args.methods.split(",")}
    options = {key: value for key, value in vars(args).items() if key not in ("json", "out")}
    document = {"benchmark": "ray", "machine": machine(), "options": options, "methods": found}
    publish(as_json(document | {"targets_met": targets(found)}), lines(found, args), args.json)


if __name__ == "__main__":
    main()
