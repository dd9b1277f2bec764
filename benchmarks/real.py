"""A real model on real text: every method with thresholds chosen on other questions; signals, promises and costs.

    python -m benchmarks real                            what there is, and what is done
    python -m benchmarks real --part popqa [--part ...]  run parts (resumable: the same command goes on)
    python -m benchmarks real --part popqa --show        only print the commands of gnothi that it runs
    python -m benchmarks real --tables                   Markdown tables of the parts that are done

Every step is a command of gnothi, run in a process of its own: what a reader would type. Questions and passages come from the
shared data folder; training, calibration and test questions never overlap.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks._data import data_folder
from benchmarks._real_plan import JUDGED, METHODS, PARTS, Arguments, as_text, commands, prepare
from benchmarks._real_tables import best_signal, page
from benchmarks._shared import say

STOPS = (130, -2, -15)
"""Exit codes of a command that was interrupted."""
NEEDED_BY = {"probe": "probe_gate", "classifier": "adaptive_rag"}
"""Step → the row of the table that needs it; that of a threshold or a test stands in its name."""


def main() -> int:
    arguments, options = _options()
    parts = options.part or list(PARTS)
    if options.tables:
        sys.stdout.write(
            "\n".join(page(arguments.out, [part for part in parts if (arguments.out / part / "test").is_dir()])) + "\n"
        )
        return 0
    if not options.part:
        for part in PARTS:
            runs = sorted(path.name for path in (arguments.out / part).glob("test*") if path.is_dir())
            sys.stdout.write(f"{part:<10} {', '.join(runs) or 'nothing yet'}\n")
        return 0
    if options.show:
        for part in parts:
            for what, command in commands(arguments, part):
                sys.stdout.write(f"# {part}, {what}\n{as_text(command, arguments)}\n")
        return 0
    return max(_run(arguments, part) for part in parts)


def _run(arguments: Arguments, part: str) -> int:
    """All steps of a part. What hangs on a step that fails is left out, with a word; 1 where something was."""
    folder = prepare(arguments, part)
    (folder / "thresholds").mkdir(exist_ok=True)
    done: set[str] = set()
    best, failed = "", 0
    while left := [(what, command) for what, command in commands(arguments, part, best or "SIGNAL") if what not in done]:
        what, command = left[0]
        if "SIGNAL" in " ".join(command):
            best = best_signal(folder / "calibration")
            say(f"{part}: the best signal on the calibration questions is {best}")
            continue
        done.add(what)
        say(f"{part}, {what}: {as_text(command, arguments)}")
        began = time.monotonic()
        code = subprocess.run([sys.executable, "-m", "gnothi", *command], check=False, stdout=subprocess.DEVNULL).returncode
        say(f"{part}, {what}: exit code {code}, {time.monotonic() - began:.0f} s")
        if code in STOPS or (code > 1 and what not in NEEDED_BY and not what.startswith("t")):
            return code
        if code > 1:
            failed = 1
            without = NEEDED_BY.get(what, what.rpartition(" ")[2])
            say(f"{part}: goes on without {without}")
            arguments = replace(arguments, methods=tuple(name for name in arguments.methods if name != without))
    return failed


def _without_judge(judge: str | None) -> tuple[str, ...]:
    return tuple(name for name in METHODS if judge or name != JUDGED)


def _options() -> tuple[Arguments, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="a data set (repeatable)")
    parser.add_argument("--out", type=Path, default=Path("real-runs"), help="folder of all runs [%(default)s]")
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data]")
    parser.add_argument("--model", default="smollm2", help="as for gnothi --model [%(default)s]")
    parser.add_argument("--questions", default="200,100,100", help="training, calibration and test questions [%(default)s]")
    parser.add_argument("--methods", help=f"[{','.join(METHODS)}; {JUDGED} only with --judge]")
    parser.add_argument("--judge", help=f"a model trained by `gnothi train self-knowledge`, for {JUDGED}")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for every command that opens the model"
    )
    parser.add_argument("--show", action="store_true", help="print the commands and run nothing")
    parser.add_argument("--tables", action="store_true", help="print Markdown tables of what is done")
    options = parser.parse_args()
    sizes = tuple(int(size) for size in options.questions.split(","))
    if len(sizes) != 3 or min(sizes) < 1:
        parser.error(f"--questions: got {options.questions!r}, expected three sizes, as in 200,100,100")
    methods = tuple(options.methods.split(",")) if options.methods else _without_judge(options.judge)
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"--methods: got {', '.join(unknown)}, expected some of {', '.join(METHODS)}")
    if JUDGED in methods and not options.judge:
        parser.error(f"--methods: got {JUDGED} without --judge, expected --judge FOLDER of `gnothi train self-knowledge`")
    runs = options.part and not (options.show or options.tables)
    data = options.data or (data_folder() if runs else Path())
    extra = tuple(word for setting in options.set for word in ("--set", setting))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return Arguments(data, options.out, options.model, sizes, methods, options.judge, extra), options


if __name__ == "__main__":
    sys.exit(main())
