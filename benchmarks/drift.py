"""How often does the server's test of drift raise a false alarm, and how soon does it notice a change?

    python -m benchmarks drift [--data FOLDER] [--trials 400]

Made: normal scores, calibrations of several sizes, fifty windows each. Recorded: scores of Llama-3-8B on NQ, half of them the
calibration, windows drawn from the other half (a false alarm) or, by a growing share, from TriviaQA (a change).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._data import data_folder
from benchmarks._shared import table
from gnothi.calibration.live import ALARM, WINDOW
from gnothi.stats.reliability import drift

SIZES = (100, 300, 1000, 3000)
WINDOWS = 50
SHIFTS = (0.0, 0.2, 0.4, 0.8)
SHARES = (0.0, 0.25, 0.5, 1.0)
SIGNALS = ("eigen_score", "perplexity", "ln_entropy", "energy_score")
Scores = NDArray[np.float64]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data sets [shared/data]")
    parser.add_argument("--trials", type=int, default=400, help="calibrations of each kind [%(default)s]")
    options = parser.parse_args()
    recorded = (options.data or data_folder()) / "recorded"
    lines = [*made(options.trials), "", *changed(recorded, options.trials)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def made(trials: int) -> list[str]:
    """Normal scores whose mean moves by so many standard deviations."""
    rng = np.random.default_rng(0)
    header = ["questions of the calibration", *(f"mean moved by {shift}" for shift in SHIFTS), "the worst twentieth, not moved"]
    lines = []
    for size in SIZES:
        shares = {shift: np.array([_alarms(rng, size, shift) for _ in range(trials)]) for shift in SHIFTS}
        cells = [f"{shares[shift].mean():.3f}" for shift in SHIFTS]
        lines.append([f"{size:,}", *cells, f"{np.quantile(shares[0.0], 0.95):.3f}"])
    return table(header, lines)


def _alarms(rng: np.random.Generator, size: int, shift: float) -> float:
    """The share of one calibration's windows that raise an alarm."""
    before = rng.normal(size=size)
    return float(np.mean([drift(before, rng.normal(shift, size=WINDOW)).p < ALARM for _ in range(WINDOWS)]))


def changed(recorded: Path, trials: int) -> list[str]:
    """Real scores: windows of NQ into which TriviaQA comes."""
    rng = np.random.default_rng(0)
    lines = []
    for signal in SIGNALS:
        nq, trivia = (_scores(recorded / f"{name}.test.jsonl", signal) for name in ("nq", "trivia"))
        cells = [f"{np.mean([_alarm(rng, nq, trivia, share) for _ in range(trials)]):.3f}" for share in SHARES]
        lines.append([signal, *cells])
    return table(["signal", *(f"{share:.0%} of TriviaQA" for share in SHARES)], lines)


def _alarm(rng: np.random.Generator, old: Scores, new: Scores, share: float) -> bool:
    mixed = rng.permutation(old)
    before, rest = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    count = round(share * WINDOW)
    drawn = [rng.choice(rest, WINDOW - count, replace=False), rng.choice(new, count, replace=False)]
    return drift(before, np.concatenate(drawn)).p < ALARM


def _scores(path: Path, signal: str) -> Scores:
    return np.array([json.loads(line)["direct"][signal] for line in path.read_text("utf-8").splitlines()], dtype=np.float64)


if __name__ == "__main__":
    sys.exit(main())
