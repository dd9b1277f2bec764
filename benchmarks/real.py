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
from pathlib import Path

from benchmarks._real_plan import METHODS, PARTS, Given, commands, data_folder, prepare, shown
from benchmarks._shared import say


def main() -> int:
    given, options = _options()
    parts = options.part or list(PARTS)
    if options.tables:
        from benchmarks._real_tables import page

        sys.stdout.write("\n".join(page(given.out, [part for part in parts if (given.out / part / "test").is_dir()])) + "\n")
        return 0
    if not options.part:
        for part in PARTS:
            runs = sorted(path.name for path in (given.out / part).glob("test*") if path.is_dir())
            sys.stdout.write(f"{part:<10} {', '.join(runs) or 'nothing yet'}\n")
        return 0
    if options.show:
        for part in parts:
            for what, command in commands(given, part):
                sys.stdout.write(f"# {part}, {what}\n{shown(command, given)}\n")
        return 0
    return max(_run(given, part) for part in parts)


def _run(given: Given, part: str) -> int:
    folder = prepare(given, part)
    (folder / "thresholds").mkdir(exist_ok=True)
    failed = 0
    best = "SIGNAL"
    for what, command in commands(given, part):
        if best == "SIGNAL" and "SIGNAL" in " ".join(command):
            from benchmarks._real_tables import best_signal

            best = best_signal(folder / "calibration")
            say(f"{part}: the best signal on the calibration questions is {best}")
        command = next(one for name, one in commands(given, part, best) if name == what)
        say(f"{part}, {what}: {shown(command, given)}")
        began = time.monotonic()
        code = subprocess.run([sys.executable, "-m", "gnothi", *command], check=False, stdout=subprocess.DEVNULL).returncode
        say(f"{part}, {what}: exit code {code}, {time.monotonic() - began:.0f} s")
        if code in (130, -2):
            return code
        failed += code != 0
    return int(failed > 0)


def _options() -> tuple[Given, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="a data set (repeatable)")
    parser.add_argument("--out", type=Path, default=Path("real-runs"), help="folder of all runs [%(default)s]")
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data]")
    parser.add_argument("--model", default="smollm2", help="as for gnothi --model [%(default)s]")
    parser.add_argument("--questions", default="200,100,100", help="training, calibration and test questions [%(default)s]")
    parser.add_argument("--methods", default=",".join(METHODS), help="[%(default)s]")
    parser.add_argument("--judge", help="a model trained by `gnothi train self-knowledge`, for skill_rag")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for every command that opens the model"
    )
    parser.add_argument("--show", action="store_true", help="print the commands and run nothing")
    parser.add_argument("--tables", action="store_true", help="print Markdown tables of what is done")
    options = parser.parse_args()
    sizes = tuple(int(size) for size in options.questions.split(","))
    if len(sizes) != 3 or min(sizes) < 1:
        parser.error(f"--questions: got {options.questions!r}, expected three sizes, as in 200,100,100")
    methods = tuple(options.methods.split(","))
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"--methods: got {', '.join(unknown)}, expected some of {', '.join(METHODS)}")
    data = options.data or (Path() if options.tables else data_folder())
    extra = tuple(word for setting in options.set for word in ("--set", setting))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return Given(data, options.out, options.model, sizes, methods, options.judge, extra), options


if __name__ == "__main__":
    sys.exit(main())
