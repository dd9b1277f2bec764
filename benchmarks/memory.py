"""Does memory stay bounded over thousands of questions? SeaKR on the lab through the evaluation runner.

    python -m benchmarks.memory [--questions 2000] [--every 100] [--concurrency 256] [--set KEY=VALUE] [--json]

After every hundred answers: the process's own resident memory then (mapped files left out), and its peak since the hundred
before. The first figures fill what is kept on purpose (model, caches, arenas); from --settled answers on, a slope in MB per
1,000 questions is fitted with a 95% interval.
The run keeps each finished row, so that a slope of a few kB a question is its own. Needs Linux.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from benchmarks._lab_runs import LabRun, lab_questions, seakr
from benchmarks._shared import Peak, Spread, arguments, as_json, machine, own_mb, publish, say, slope, table


def measure(args: argparse.Namespace) -> tuple[list[dict[str, float]], LabRun]:
    import torch

    torch.set_num_threads(args.threads)
    figures: list[dict[str, float]] = []

    def note(answered: int) -> None:
        if answered % args.every and answered != args.questions:
            return
        now = own_mb()
        figures.append({"answered": answered, "resident_mb": now, "peak_mb": max(peak.mb, now)})
        peak.mb = now
        say(f"  {answered} of {args.questions}: {now:.0f} MB, peak {figures[-1]['peak_mb']:.0f} MB")

    with Peak(pause=0.02) as peak:
        run = seakr(lab_questions(args.questions), args.concurrency, args.overrides, note)
    return figures, run


def growth(figures: Sequence[dict[str, float]], settled: int) -> dict[str, Any]:
    """What was added after ``settled`` answers: last minus first, and the slope per 1,000 questions where points suffice."""
    later = [figure for figure in figures if figure["answered"] >= settled]
    found: dict[str, Any] = {"settled": settled}
    for key in ("resident_mb", "peak_mb"):
        found[key] = {"added": later[-1][key] - later[0][key] if later else None, "per_1000": None}
        if len(later) >= 3:
            found[key]["per_1000"] = slope([one["answered"] / 1000 for one in later], [one[key] for one in later])
    return found


def lines(figures: Sequence[dict[str, float]], grown: dict[str, Any], run: LabRun, args: argparse.Namespace) -> list[str]:
    out = [f"SeaKR on the lab, {run.questions} questions, {args.concurrency} at once, {run.per_second:.1f} a second"]
    rows = [[f"{one['answered']:.0f}", f"{one['resident_mb']:.0f}", f"{one['peak_mb']:.0f}"] for one in figures]
    out += table(["answered", "resident MB", "peak MB since the last figure"], rows)
    for key, name in (("resident_mb", "resident"), ("peak_mb", "peak")):
        added, per = grown[key]["added"], grown[key]["per_1000"]
        if added is not None:
            fitted = f"; {per.median:+.1f} MB per 1,000 questions [{per.low:+.1f}, {per.high:+.1f}]" if per else ""
            out.append(f"{name}: {added:+.1f} MB after the first {grown['settled']}{fitted}")
    per = grown["resident_mb"]["per_1000"]
    if isinstance(per, Spread):
        out.append(f"{'met    ' if per.low <= 0 else 'NOT MET'} no growth (the interval of the resident slope reaches 0)")
    return out


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=1)
    parser.add_argument("--questions", type=int, default=2000, help="[%(default)s]")
    parser.add_argument("--every", type=int, default=100, help="questions between two figures [%(default)s]")
    parser.add_argument("--settled", type=int, default=200, help="answers until caches are full [%(default)s]")
    parser.add_argument("--concurrency", type=int, default=256, help="questions under way [%(default)s]")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="as of `gnothi eval` (repeat)"
    )
    args = parser.parse_args(argv)
    runs = []
    for number in range(args.repeats):
        say(f"run {number + 1} of {args.repeats}")
        figures, run = measure(args)
        runs.append((figures, growth(figures, args.settled), run))
    options = {key: value for key, value in vars(args).items() if key != "json"}
    results = [{"figures": figures, "growth": grown, "per_second": run.per_second} for figures, grown, run in runs]
    document = {"benchmark": "memory", "machine": machine(), "options": options, "runs": results}
    publish(as_json(document), [line for figures, grown, run in runs for line in lines(figures, grown, run, args)], args.json)


if __name__ == "__main__":
    main()
