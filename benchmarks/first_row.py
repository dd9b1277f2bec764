"""When does the first answer of many arrive, and at what memory, against reading every prompt before any is answered?

    python -m benchmarks.first_row --model PATH --index PATH --questions FILE [--limit 60] [--method rag] [--set KEY=VALUE]

Each run is `gnothi eval` by defaults, from Python in a process of its own, timed from when model and index are open:

- alone: the first question, nothing else under way
- defaults: --limit questions
- all first: the same questions, every prompt read as soon as it comes (--concurrency 256, model.prefill_tokens and
  model.cache_mb without bound), as it was before prompts were read in pieces

Peak memory is the process's own (RssAnon), weights and libraries included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._shared import (
    Peak,
    Spread,
    arguments,
    as_json,
    interleave,
    machine,
    publish,
    ratios,
    rounded,
    spread,
    table,
)

ALONE, DEFAULTS, ALL_FIRST = "alone", "defaults", "all first"
UNBOUND = ("model.prefill_tokens=100000000", "model.cache_mb=1000000")
TIMES_ALONE, PEAK_MB, TIMES_ALL_FIRST = 5.0, 3000.0, 1.0


def child(args: argparse.Namespace) -> dict[str, float]:
    """One run, in this process."""
    import torch

    import gnothi

    torch.set_num_threads(args.threads)
    pairs = dict(one.split("=", 1) for one in args.overrides)
    model_settings = {key.removeprefix("model."): value for key, value in pairs.items() if key.startswith("model.")}
    settings = {key: value for key, value in pairs.items() if not key.startswith("model.")}
    first: list[float] = []
    rag = gnothi.open(args.method, model=args.model, index=args.index, model_settings=model_settings, **settings)
    with tempfile.TemporaryDirectory() as folder, Peak(0.02) as peak:
        began = time.perf_counter()
        gnothi.evaluate(
            args.questions,
            rag,
            Path(folder) / "run",
            limit=1 if args.child == ALONE else args.limit,
            concurrency=256 if args.child == ALL_FIRST else None,
            on_row=lambda _: first.append(time.perf_counter() - began),
        )
        seconds = time.perf_counter() - began
    rag.close()
    return {"first": first[0], "total": seconds, "peak_mb": peak.mb}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in (ALONE, DEFAULTS, ALL_FIRST)}

    def timed(name: str, _: int) -> float:
        options = [f"--{key}={getattr(args, key)}" for key in ("model", "index", "questions", "method", "limit", "threads")]
        overrides = [*args.overrides, *(UNBOUND if name == ALL_FIRST else ())]
        command = [sys.executable, "-m", "benchmarks.first_row", f"--child={name}", *options]
        done = subprocess.run([*command, *(f"--set={one}" for one in overrides)], stdout=subprocess.PIPE, check=True)
        runs[name].append(json.loads(done.stdout))
        return runs[name][-1]["total"]

    rounds = interleave(list(runs), timed, args.repeats)
    firsts = [{name: some[number]["first"] for name, some in runs.items()} for number in range(args.repeats)]
    return {
        "runs": {name: {key: spread(one[key] for one in some) for key in some[0]} for name, some in runs.items()},
        "first_to_alone": ratios(firsts, DEFAULTS, ALONE),
        "total_to_all_first": ratios(rounds, DEFAULTS, ALL_FIRST),
    }


def targets(figures: Mapping[str, Any]) -> dict[str, bool]:
    """What issue 16 asks for."""
    peak: Spread = figures["runs"][DEFAULTS]["peak_mb"]
    return {
        f"first row within {TIMES_ALONE:g} x a question alone": figures["first_to_alone"].median <= TIMES_ALONE,
        f"peak under {PEAK_MB:,.0f} MB": peak.median < PEAK_MB,
        f"total within {TIMES_ALL_FIRST:g} x that of reading all prompts first": figures["total_to_all_first"].median
        <= TIMES_ALL_FIRST,
    }


def lines(figures: Mapping[str, Any], args: argparse.Namespace) -> list[str]:
    rows = [[name, *(str(one[key]) for key in ("first", "total", "peak_mb"))] for name, one in figures["runs"].items()]
    return [
        f"{args.method}, {args.limit} questions, {args.threads} threads; medians of {args.repeats} rounds (range)",
        *table(("run", "first row, s", "all rows, s", "peak MB"), rows),
        "",
        f"first row {rounded(figures['first_to_alone'].median)} x a question alone; "
        f"total {rounded(figures['total_to_all_first'].median)} x reading all first",
        *(f"{'met    ' if met else 'NOT MET'} {target}" for target, met in targets(figures).items()),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=1)
    parser.add_argument("--model", default="lab", help="[%(default)s]")
    parser.add_argument("--index", default="lab", help="[%(default)s]")
    parser.add_argument("--questions", default="lab", help="a data set or file [%(default)s]")
    parser.add_argument("--method", default="rag", help="[%(default)s]")
    parser.add_argument("--limit", type=int, default=60, help="questions [%(default)s]")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="as of `gnothi eval` (repeat)"
    )
    parser.add_argument("--child", choices=(ALONE, DEFAULTS, ALL_FIRST), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        sys.stdout.write(json.dumps(child(args)))
        return
    found = measure(args)
    options = {key: value for key, value in vars(args).items() if key not in ("json", "child")}
    document = {"benchmark": "first_row", "machine": machine(), "options": options, **found}
    publish(as_json(document | {"targets_met": targets(found)}), lines(found, args), args.json)


if __name__ == "__main__":
    main()
