"""A real model that is taught a known part of real questions: when to search, what to keep, which answer to trust.

    python -m benchmarks taught                                  what there is, and what is done
    python -m benchmarks taught --seed 0 [--seed 1 ...]          teach, and run all parts, libraries and methods (resumable)
    python -m benchmarks taught --seed 0 --part popqa --library complete --methods best_signal,keqa
    python -m benchmarks taught --seed 0 --show                  only print the commands of gnothi that it runs
    python -m benchmarks taught --seed 0 --seed 1 --tables       Markdown tables of what is done

A fact is taught never, or 1, 4 or 16 times an epoch, in wordings other than the question that is put later. Every step but the
teaching is a command of gnothi, run in a process of its own. Facts, questions and passages come from the shared data folder.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks._data import data_folder
from benchmarks._real_plan import Command
from benchmarks._shared import say
from benchmarks._taught_facts import LIBRARIES, PARTS, readings
from benchmarks._taught_plan import METHODS, Plan, commands, prepare
from benchmarks._taught_tables import SPENT, best_signal, page
from benchmarks._taught_teach import Teaching, drawn, teach
from benchmarks.real import STOPS


def main() -> int:
    plans, options = _options()
    if options.tables:
        sys.stdout.write("\n".join(page(plans)) + "\n")
        return 0
    if options.show:
        for plan in plans:
            for what, command in commands(plan, {}):
                sys.stdout.write(f"# seed {plan.seed}, {what}\n{_shown(command, plan)}\n")
        return 0
    if not options.seed:
        for folder in sorted(options.out.glob("seed-*")):
            runs = sorted(str(path.relative_to(folder)) for path in folder.rglob("done") if path.is_file())
            sys.stdout.write(f"{folder.name}: {', '.join(runs) or 'nothing yet'}\n")
        return 0
    return max(_run(plan) for plan in plans)


def _run(plan: Plan) -> int:
    """All steps. What fails is named and what hangs on it left out; 1 where something was."""
    prepare(plan)
    told = plan.facts()
    everyone = [fact for all_facts, grades in told.values() for fact in all_facts if fact.id in grades]
    grades = {name: grade for _, mine in told.values() for name, grade in mine.items()}
    reading = readings({part: mine for part, (mine, _) in told.items()}, grades, plan.teaching.readings, plan.seed)
    teach(plan.source, plan.folder / "teaching", everyone, grades, plan.teaching, reading)
    say("\n".join(drawn(plan.folder / "teaching")))
    best: dict[str, tuple[str, float]] = {}
    done: set[str] = set()
    failed = 0
    while left := [(what, command) for what, command in commands(plan, best) if what not in done]:
        what, command = left[0]
        if "gate=SIGNAL" in command:
            kind = what.split()[-1]
            best[kind] = best_signal(plan, kind)
            say(f"{kind}: the best signal on the calibration questions is {best[kind][0]}")
            continue
        done.add(what)
        say(f"seed {plan.seed}, {what}: {_shown(command, plan)}")
        code, seconds = _call(command)
        say(f"seed {plan.seed}, {what}: exit code {code}, {seconds:.0f} s")
        if code in STOPS:
            return code
        failed = max(failed, int(code != 0 and what != "probe"))
    return failed


def _call(command: Command) -> tuple[int, float]:
    out = command[command.index("--out") + 1]
    if Path(out, "done").is_file():
        return 0, 0.0
    began, before = time.monotonic(), _processor()
    code = subprocess.run([sys.executable, "-m", "gnothi", *command], check=False, stdout=subprocess.DEVNULL).returncode
    if Path(out).is_dir():
        with Path(out, SPENT).open("a") as file:
            file.write(f"{_processor() - before:.1f}\n")
        if code == 0:
            Path(out, "done").touch()
    return code, time.monotonic() - began


def _processor() -> float:
    """Processor seconds of all commands so far, which another program's load changes little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(command: Command, plan: Plan) -> str:
    """The command as a reader may type it, with the folders' names alone."""
    return " ".join(word.replace(str(plan.folder), "taught") for word in ["gnothi", *command])


def _options() -> tuple[list[Plan], argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", action="append", type=int, default=[], help="of grades and teaching (repeatable)")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="a data set (repeatable) [all]")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="a library (repeatable) [all]")
    parser.add_argument("--methods", default=",".join(METHODS), help="beside panel, direct, cot and rag [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("taught-runs"), help="folder of all runs [%(default)s]")
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data]")
    parser.add_argument("--model", default="smollm2", help="the model that is taught: smollm2, or a folder [%(default)s]")
    parser.add_argument("--size", type=int, default=30, help="facts of each grade and data set [%(default)s]")
    parser.add_argument(
        "--every", type=int, default=3, help="methods beside never and always get each N-th question [%(default)s]"
    )
    parser.add_argument("--epochs", type=int, default=Teaching.epochs, help="at most [%(default)s]")
    parser.add_argument(
        "--precision", choices=("float32", "bfloat16"), default=Teaching.precision, help="of teaching [%(default)s]"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for every command that opens the model"
    )
    parser.add_argument("--show", action="store_true", help="print the commands and run nothing")
    parser.add_argument("--tables", action="store_true", help="print Markdown tables of what is done")
    options = parser.parse_args()
    methods = tuple(name for name in options.methods.split(",") if name)
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"--methods: got {', '.join(unknown)}, expected some of {', '.join(METHODS)}")
    runs = options.seed and not (options.show or options.tables)
    data = options.data or (data_folder() if runs else Path())
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    plan = Plan(
        data=data,
        out=options.out,
        source=options.model,
        seed=0,
        size=options.size,
        parts=tuple(options.part or PARTS),
        libraries=tuple(options.library or LIBRARIES),
        methods=methods,
        every=options.every,
        extra=tuple(word for setting in options.set for word in ("--set", setting)),
        teaching=Teaching(epochs=options.epochs, precision=options.precision),
    )
    return [replace(plan, seed=seed, teaching=replace(plan.teaching, seed=seed)) for seed in options.seed], options


if __name__ == "__main__":
    sys.exit(main())
