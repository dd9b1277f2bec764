"""How many questions a second does SeaKR answer when many are under way, against one at a time? Lab model, lab index.

    python -m benchmarks.throughput [--questions 500] [--alone 100] [--concurrency 1,8,64,512] [--workers 2]

Runs go through the evaluation runner, as `gnothi eval lab` does, each with a model opened anew. One question at a time is slow:
--alone questions, spread evenly over the same list, stand for all (and at low concurrency at most --alone x concurrency).

With --workers the greatest concurrency runs in that many processes, too, as `gnothi eval --workers` does; their decode loops
are not counted.

A slot is room for one row in a step of the decode loop; there are as many as --set model.max_rows says. A row is one
continuation, or several of one prompt that have said the same so far where the engine computes those once ("samples a row").
Occupancy is rows fed / (steps x slots): 100% when every step advances as many rows as it may. It says how well a scheduler
fills slots only where there is work for more: at the end of a run the last questions leave slots empty, so it is given for the
whole run and until 90% are answered, and few questions at once never fill many slots.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks._lab_runs import LabRun, every, lab_questions, seakr, seakr_in_processes
from benchmarks._shared import arguments, as_json, interleave, machine, numbers, publish, ratios, rounded, say, spread, table

TIMES_FASTER, OCCUPANCY = 8.0, 0.85


def measure(args: argparse.Namespace) -> dict[str, Any]:
    import torch

    torch.set_num_threads(args.threads)
    questions = lab_questions(args.questions)
    levels = sorted({1, *args.concurrency})
    asked = {level: every(questions, min(args.questions, args.alone * level)) for level in levels}
    runs: dict[int, list[LabRun]] = {level: [] for level in levels}
    say(f"questions at each concurrency: {', '.join(f'{level}: {len(some)}' for level, some in asked.items())}")
    seakr(questions[:8], 8, args.overrides)

    def timed(name: str, _: int) -> float:
        run = seakr(asked[int(name)], int(name), args.overrides)
        runs[int(name)].append(run)
        return run.seconds / run.questions

    def timed_in_processes() -> float:
        return seakr_in_processes(questions, max(levels), args.overrides, args.workers) / len(questions)

    names = [str(level) for level in levels]
    processes = [f"{max(levels)} in {args.workers} processes"] if args.workers > 1 else []
    rounds = interleave(
        [*names, *processes],
        lambda name, number: timed_in_processes() if name in processes else timed(name, number),
        args.repeats,
    )
    return {str(level): summary(runs[level]) | {"faster": ratios(rounds, "1", str(level))} for level in levels} | {
        name: {
            "questions": len(questions),
            "per_second": spread(1 / one[name] for one in rounds),
            "faster": ratios(rounds, "1", name),
        }
        for name in processes
    }


def summary(runs: Sequence[LabRun]) -> dict[str, Any]:
    return {
        "questions": runs[0].questions,
        "slots": runs[0].slots,
        "per_second": spread(run.per_second for run in runs),
        "cpu_seconds_per_question": spread(run.cpu_seconds / run.questions for run in runs),
        "steps": spread(run.steps[-1] for run in runs),
        "rows_per_step": spread(run.rows_per_step() for run in runs),
        "samples_per_row": spread(run.samples_per_row for run in runs),
        "occupancy": spread(run.occupancy() for run in runs),
        "occupancy_until_90": spread(run.occupancy(0.9) for run in runs),
    }


def targets(levels: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """What issue 3 asks for, at the concurrency that serves best."""
    return {
        f"at least {TIMES_FASTER} x one question at a time": max(one["faster"].median for one in levels.values())
        >= TIMES_FASTER,
        f"occupancy of the whole run at least {OCCUPANCY:.0%}": max(
            one["occupancy"].median for one in levels.values() if "occupancy" in one
        )
        >= OCCUPANCY,
        f"occupancy until 90% are answered at least {OCCUPANCY:.0%}": max(
            one["occupancy_until_90"].median for one in levels.values() if "occupancy" in one
        )
        >= OCCUPANCY,
    }


def lines(levels: Mapping[str, Mapping[str, Any]], args: argparse.Namespace) -> list[str]:
    header = ("at once", "asked", "questions/s", "x one at a time", "CPU s a question", "steps", "rows a step")
    rows = []
    for level, one in levels.items():
        if "occupancy" not in one:
            rows.append([level, str(one["questions"]), str(one["per_second"]), str(one["faster"]), *[""] * 7])
            continue
        values = (one["per_second"], one["faster"], one["cpu_seconds_per_question"], one["steps"], one["rows_per_step"])
        shares = (
            rounded(one["samples_per_row"].median),
            str(one["slots"]),
            f"{one['occupancy'].median:.1%}",
            f"{one['occupancy_until_90'].median:.1%}",
        )
        rows.append([level, str(one["questions"]), *map(str, values), *shares])
    return [
        f"SeaKR on the lab, {args.threads} threads; medians of {args.repeats} interleaved rounds (least - greatest)",
        *table((*header, "samples a row", "slots", "occupancy", "until 90%"), rows),
        "",
        *(f"{'met    ' if met else 'NOT MET'} {target}" for target, met in targets(levels).items()),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=3)
    parser.add_argument("--questions", type=int, default=500, help="of the lab's mixed questions [%(default)s]")
    parser.add_argument("--alone", type=int, default=100, help="questions for concurrency 1 [%(default)s]")
    parser.add_argument("--concurrency", type=numbers, default=[1, 8, 64, 512], help="questions under way [1,8,64,512]")
    parser.add_argument("--workers", type=int, default=2, help="processes of the last run; 1 leaves it out [%(default)s]")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="as of `gnothi eval` (repeat)"
    )
    args = parser.parse_args(argv)
    levels = measure(args)
    options = {key: value for key, value in vars(args).items() if key != "json"}
    document = {"benchmark": "throughput", "machine": machine(), "options": options, "levels": levels}
    publish(as_json(document | {"targets_met": targets(levels)}), lines(levels, args), args.json)


if __name__ == "__main__":
    main()
