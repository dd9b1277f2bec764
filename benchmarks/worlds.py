"""Do claims of the laboratory carry to other worlds? Each world has its own model; then a table with means and spread.

    python -m benchmarks worlds --out FOLDER [--seeds 0,1,2] [--limit 500]

World 0 is the built-in one with the shipped model. For every other one a model is trained first (`gnothi lab train --seed`, 20
to 30 minutes on two cores). The same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks._shared import numbers, say, table
from gnothi.report.summary import Method, summarise
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row, group
from gnothi.stats.paired import paired_test

METHODS = ("direct", "cot", "rag", "flare", "seakr")
FEW = ("ircot", "--set", "ircot.k=2")
"""The laboratory's models were taught with few passages."""
FIRST = "seakr"
Rows = Mapping[str, Sequence[Row]]
Floats = NDArray[np.float64]


def main() -> int:
    options = _options()
    for command in commands(options.seeds, options.out, options.limit):
        say(f"gnothi {' '.join(command)}")
        if code := subprocess.run(
            [sys.executable, "-m", "gnothi", *command], check=False, stdout=subprocess.DEVNULL
        ).returncode:
            return code
    worlds = {seed: {**_rows(run_of(options.out, seed)), **_rows(run_of(options.out, seed, "ircot"))} for seed in options.seeds}
    sys.stdout.write("\n".join([*scores(worlds), "", *differences(worlds)]) + "\n")
    return 0


def commands(seeds: Sequence[int], out: Path, limit: int) -> Iterator[list[str]]:
    for seed in seeds:
        model = str(out / f"model-{seed}") if seed else "lab"
        if seed:
            yield ["lab", "train", "--seed", str(seed), "--out", model]
        asked = ["eval", f"lab:{seed}", "--model", model, "--limit", str(limit)]
        yield [*asked, "--method", ",".join(METHODS), "--out", str(run_of(out, seed))]
        yield [*asked, "--method", *FEW, "--out", str(run_of(out, seed, "ircot"))]


def run_of(out: Path, seed: int, kind: str = "run") -> Path:
    return out / f"{kind}-{seed}"


def scores(worlds: Mapping[int, Rows]) -> list[str]:
    """A method a row: exact match in each world, mean and standard deviation over worlds; searches and tokens, their range;
    AUROC of its uncertainty in each."""
    summaries = {
        seed: {one.method: one for one in summarise([*_all(rows)], "questions").methods} for seed, rows in worlds.items()
    }
    header = ["method", *(f"world {seed}" for seed in worlds), "mean", "SD", "searches", "tokens", "AUROC"]
    return table(header, (_line(name, [summaries[seed][name] for seed in worlds]) for name in next(iter(summaries.values()))))


def differences(worlds: Mapping[int, Rows]) -> list[str]:
    """SeaKR less each other method: difference and McNemar's p in each world, then their mean with the interval that worlds as
    draws give (Student's t: with three of them it is wide)."""
    header = [f"{FIRST} less", *(f"world {seed}" for seed in worlds), "mean", "95% interval over worlds"]
    return table(header, (_against(name, worlds) for name in next(iter(worlds.values())) if name != FIRST))


def _line(name: str, methods: Sequence[Method]) -> list[str]:
    matched = [one.em or 0.0 for one in methods]
    searches = [one.retrievals or 0.0 for one in methods]
    tokens = [(one.prompt_tokens or 0.0) + (one.generated_tokens or 0.0) for one in methods]
    told = [one.gate_auroc for one in methods if one.gate_auroc is not None]
    return [
        name,
        *(f"{value:.3f}" for value in matched),
        f"{mean(matched):.3f}",
        f"{stdev(matched):.3f}" if len(matched) > 1 else "",
        _range(searches, ".2f"),
        _range(tokens, ",.0f"),
        ", ".join(f"{value:.3f}" for value in told),
    ]


def _range(values: Sequence[float], form: str) -> str:
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low}–{high}"


def _against(name: str, worlds: Mapping[int, Rows]) -> list[str]:
    found = [paired_test(*_matched(rows[FIRST], rows[name])) for rows in worlds.values()]
    means = [one.difference for one in found]
    ends = ""
    if len(means) > 1:
        half = float(stats.t.ppf(0.975, len(means) - 1)) * stdev(means) / len(means) ** 0.5
        ends = f"{mean(means) - half:+.3f} to {mean(means) + half:+.3f}"
    return [name, *(f"{one.difference:+.3f} (p = {one.p:.2g})" for one in found), f"{mean(means):+.3f}", ends]


def _matched(first: Sequence[Row], second: Sequence[Row]) -> tuple[Floats, Floats]:
    mine, theirs = ({row.question_id: row.metrics["em"] for row in rows if not row.failed} for rows in (first, second))
    common = sorted(mine.keys() & theirs.keys())
    return np.array([mine[key] for key in common]), np.array([theirs[key] for key in common])


def _rows(run: Path) -> Rows:
    return group(read_rows(run))


def _all(rows: Rows) -> Iterator[Row]:
    for some in rows.values():
        yield from some


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of models and runs")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2], help="worlds [0,1,2]")
    parser.add_argument("--limit", type=int, default=500, help="questions of each [%(default)s]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
