"""Faults and hostile input: what kills, a faulting world and broken files do to the commands; each finding with a command.

Each part is a list of numbered trials, drawn from the seed alone. They run in processes of their own; what they find is noted
in DIR/PART.jsonl, one line a trial, and the same command goes on where it stopped. A finding is tried once more in a fresh
process before it counts. Needs Linux.

    python -m benchmarks faults --part fuzz --minutes 10 --seed 1 --out DIR
    python -m benchmarks faults --part fuzz --seed 1 --trial 17 --out DIR     shows trial 17 again
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from benchmarks._faults_trial import patience
from benchmarks._shared import ROOT, say, table

PARTS = {
    name: f"benchmarks._faults_{name}"
    for name in (
        "fuzz",
        "api",
        "remote",
        "search",
        "killed",
        "stopped",
        "programs",
        "starved",
        "ray",
        "together",
        "world",
        "soak",
    )
}
SILENCE = 40.0
"""Seconds without a word after which a trial's process is taken for hung. The trial itself stops after ten, if Python can."""
_START = 900.0
_LIFE = 10_000
"""Trials of one process: what commands leave in memory would in the end be taken for theirs."""
READY = {"ready": True}
ONLY = {
    "fuzz": "a kind of file",
    "api": "a route",
    "remote": "twice",
    "search": "an engine",
    "killed": "a job",
    "stopped": "a job",
    "programs": "a program, or several with commas",
    "starved": "as programs",
    "together": "a pair",
    "world": "a fault, or FAULT: JOB",
}

Trial = Callable[[int, int, Path, str], dict[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(*PARTS, "planted"), default="fuzz")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long [%(default)s]")
    parser.add_argument("--trials", type=int, help="stop after so many, all in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="; ".join(f"{part}: {what}" for part, what in ONLY.items()))
    parser.add_argument("--trial", type=int, help="show this one again")
    parser.add_argument("--plant", default="", help="with this mistake put in, see --part planted")
    parser.add_argument("--out", type=Path, default=Path("faults"), metavar="DIR")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where trials work, as in memory (/dev/shm) [that of --out]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.work = (args.work or args.out).resolve()
    if args.part == "planted":
        from benchmarks._faults_planted import campaign

        return campaign(args)
    if args.child is not None:
        return _child(args)
    if args.only and (wrong := _unknown(args)):
        parser.error(wrong)
    if args.trial is not None:
        found = _again(args, args.trial)
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        return 1 if found["problems"] else 0
    rows = run(args)
    document = summary(args.part, rows, args)
    sys.stdout.write((json.dumps(document, indent=1) if args.json else "\n".join(as_lines(document))) + "\n")
    return 1 if document["findings"] else 0


def _unknown(args: argparse.Namespace) -> str:
    """What is wrong with ``--only``, or nothing."""
    kinds = importlib.import_module(PARTS[args.part]).KINDS
    named = [args.only] if args.only in kinds else args.only.split(",")
    wrong = [one for one in named if one.partition(": ")[0] not in kinds]
    expected = f"expected of: {'; '.join(kinds)}" if kinds else f"--part {args.part} has no kinds, so leave it out"
    return f"--only: got {', '.join(wrong)}, {expected}" if wrong else ""


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Trials until the time is over, those of earlier calls included."""
    journal = args.out / f"{_name(args)}.jsonl"
    args.out.mkdir(parents=True, exist_ok=True)
    rows = _read(journal)
    sure = {_finding(row, one) for row in rows if row.get("confirmed") for one in row["problems"]}
    deadline = time.monotonic() + 60 * args.minutes
    with journal.open("a", encoding="utf-8") as notes:
        while time.monotonic() < deadline and (args.trials is None or len(rows) < args.trials):
            begun = len(rows)
            for row in _watched(args, len(rows), deadline):
                found = {_finding(row, one) for one in row["problems"]}
                # What was seen twice is not tried a third time; a soak's server has no second life to show it in.
                if found - sure and not args.plant and args.part != "soak":
                    again = _again(args, row["trial"])
                    row["confirmed"] = bool(again["problems"])
                    sure |= found if row["confirmed"] else set()
                    say(f"trial {row['trial']}: {row['problems'][0]} [{row['command']}; {row['changed']}]")
                rows.append(row)
                notes.write(json.dumps(row) + "\n")
                notes.flush()
                until = getattr(args, "until", None)
                if until is not None and any(said.startswith(until) for said in row["problems"]):
                    return rows
            if len(rows) == begun and time.monotonic() >= deadline:
                say(f"no trial was done in {args.minutes} minutes, since getting ready took as long: give it more --minutes")
            elif len(rows) == begun:
                raise RuntimeError("the trials' process cannot start: run it with --child 0")
    return rows


def _name(args: argparse.Namespace) -> str:
    words = (args.part, args.only.replace(",", "+"), args.plant, str(args.seed))
    return "-".join(word.replace(" ", "_").replace(":", "") for word in words if word)


def _command(args: argparse.Namespace, first: int) -> list[str]:
    more = ["--trials", str(args.trials)] if args.trials is not None else []
    return [
        sys.executable,
        "-m",
        "benchmarks.faults",
        "--part",
        args.part,
        "--seed",
        str(args.seed),
        "--only",
        args.only,
        "--plant",
        args.plant,
        "--out",
        str(args.out),
        "--work",
        str(args.work),
        "--child",
        str(first),
        *more,
    ]


def _environment() -> dict[str, str]:
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, **quiet, "PYTHONPATH": path}


def _watched(args: argparse.Namespace, first: int, deadline: float) -> Any:
    """Rows of one process from trial ``first`` on, until the time is over, it hangs or it dies."""
    with tempfile.TemporaryFile() as said:  # a pipe that nobody empties would in the end stop what writes into it
        process = subprocess.Popen(
            _command(args, first), cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, stderr=said, start_new_session=True
        )
        try:
            yield from rows_of(process, said, first, deadline, _silence(args))
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def rows_of(process: subprocess.Popen[bytes], said: IO[bytes], first: int, deadline: float, silence: float) -> Any:
    """What it writes, and in the end a row of its own where it hung or died; ``said`` holds what it wrote to stderr."""
    assert process.stdout is not None
    number, patience, buffer, how = first, _START, b"", ""
    while not how and time.monotonic() < deadline:
        if not select.select([process.stdout], [], [], patience)[0]:
            how = "hangs: nothing stops it"
        elif read := os.read(process.stdout.fileno(), 1 << 16):
            *lines, buffer = (buffer + read).split(b"\n")
            for row in map(json.loads, lines):
                patience = silence
                if row != READY:
                    number = row["trial"] + 1
                    yield row
        elif code := process.wait():
            how = f"dies: {f'signal {-code}' if code < 0 else f'exit code {code}'}"
        else:
            return
    if not how:
        return
    said.seek(0)
    told = said.read().decode(errors="replace").strip().splitlines()
    if process.poll() is not None and patience == _START:
        raise RuntimeError("the trials' process cannot start: " + "\n".join(told))
    row = {"trial": number, "target": "?", "command": "?", "changed": [], "code": None, "problems": [how]}
    yield row | {"said": "".join(told[-1:])}


def _silence(args: argparse.Namespace) -> float:
    """Whole programs take longer than commands in a process that is there already, and all do where cores are shared."""
    return patience({"programs": 900.0, "starved": 900.0, "ray": 900.0, "soak": 180.0}.get(args.part, SILENCE))


def _again(args: argparse.Namespace, number: int) -> dict[str, Any]:
    """The trial once more, in a fresh process and folder."""
    folder = f"{_name(args)}-again"
    copy = argparse.Namespace(**vars(args) | {"trials": number + 1, "out": args.out / folder, "work": args.work / folder})
    rows = list(_watched(copy, number, time.monotonic() + _START + _silence(args)))
    for used in (copy.out, copy.work):
        shutil.rmtree(used, ignore_errors=True)
    return dict(rows[0]) if rows else {"problems": ["hangs: nothing stops it"]}


def _child(args: argparse.Namespace) -> int:
    part = importlib.import_module(PARTS[args.part])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is not a row
    args.out.mkdir(parents=True, exist_ok=True)
    folder = args.work / f"{_name(args)}-work"
    shutil.rmtree(folder, ignore_errors=True)
    part.prepare(folder, args.only)
    if args.plant:
        from benchmarks._faults_planted import PLANTS

        PLANTS[args.plant].put_in()
    out.write(json.dumps(READY) + "\n")
    out.flush()
    number, last = args.child, args.child + _LIFE
    until = last if args.trials is None else min(last, args.trials)
    while number < until:
        row = {"trial": number, **part.trial(number, args.seed, folder, args.only)}
        os.chdir(args.out)
        out.write(json.dumps(row) + "\n")
        out.flush()
        number += 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _read(journal: Path) -> list[dict[str, Any]]:
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    return [json.loads(line) for line in lines]


def summary(part: str, rows: list[dict[str, Any]], args: argparse.Namespace) -> dict[str, Any]:
    """Trials by target, and findings: those that are the same are one, with the command that shows the first."""
    findings: dict[str, dict[str, Any]] = {}
    for row in rows:
        for problem in row["problems"]:
            one = findings.setdefault(
                _finding(row, problem),
                {
                    "times": 0,
                    "confirmed": False,
                    "command": row["command"],
                    "changed": row["changed"],
                    "shown_by": _shows(args, row),
                },
            )
            one["times"] += 1
            one["confirmed"] |= bool(row.get("confirmed"))
    faults: Counter[str] = Counter()
    for row in rows:
        faults[row["target"]] += row.get("faults", 0)
    codes = Counter(str(row["code"]) for row in rows)
    stops: dict[str, dict[str, Any]] = {}
    for row in rows:
        if "kills" in row:
            one = stops.setdefault(row["target"], {"kills": 0, "signals": 0, "slowest_s": 0.0})
            one["kills"] += row["kills"]
            one["signals"] += len(row["signals"])
            one["slowest_s"] = max(one["slowest_s"], *row["signals"], 0.0)
    return {
        "part": part,
        "seed": args.seed,
        "trials": len(rows),
        "faults": faults.total(),
        "faults_by_target": dict(+faults),
        "stops_by_target": stops,
        "by_target": dict(Counter(row["target"] for row in rows)),
        "exit_codes": dict(sorted(codes.items())),
        "findings": findings,
    }


def _finding(row: Mapping[str, Any], problem: str) -> str:
    return f"{row['target']}: {problem}"


def _shows(args: argparse.Namespace, row: Mapping[str, Any]) -> str:
    only = f" --only {args.only!r}" if args.only else ""
    return f"python -m benchmarks faults --part {args.part} --seed {args.seed}{only} --trial {row['trial']}"


def as_lines(document: Mapping[str, Any]) -> list[str]:
    faults = document["faults_by_target"]
    names = sorted(document["by_target"].items())
    lines = table(("what", "trials", "faults"), [(name, f"{count:,}", f"{faults.get(name, 0):,}") for name, count in names])
    if stops := document["stops_by_target"]:
        header = ("what", "kills", "Ctrl-C and SIGTERM", "the slowest end, s")
        lines += ["", *table(header, [(name, *map(str, one.values())) for name, one in sorted(stops.items())])]
    told = f"{document['trials']:,} trials with {document['faults']:,} faults" if faults else f"{document['trials']:,} trials"
    lines += ["", f"{told}, exit codes {document['exit_codes']}, {len(document['findings'])} findings."]
    for name, one in document["findings"].items():
        sure = "" if one["confirmed"] else ", not seen again"
        lines += [
            "",
            f"{name} ({one['times']} times{sure})",
            f"    {one['command']}; {one['changed']}",
            f"    {one['shown_by']}",
        ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
