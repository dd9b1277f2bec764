"""What a precision changes: every signal of two runs of `panel` over the same questions, one in each precision.

    gnothi eval QUESTIONS --method panel --model M --set model.dtype=float32 --out FLOAT32
    gnothi eval QUESTIONS --method panel --model M --set model.dtype=bfloat16 --out BFLOAT16
    python -m benchmarks precision --first FLOAT32 --second BFLOAT16 [--metric accuracy]

Each run's own answers are judged: the AUROC of "the answer is wrong" in both, its difference with an interval over questions
(paired bootstrap), how far the scores move, and how many questions a threshold in the middle of the first run's scores decides
otherwise in the second.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._shared import table
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row
from gnothi.stats.auroc import auroc

DRAWS = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=Path, required=True, help="run of panel")
    parser.add_argument("--second", type=Path, required=True, help="run of panel in the other precision")
    parser.add_argument("--metric", default="accuracy", help="by which an answer is wrong [%(default)s]")
    options = parser.parse_args()
    first, second = (_rows(run) for run in (options.first, options.second))
    common = sorted(first.keys() & second.keys())
    if not common:
        parser.error("the runs have no question in common")
    sys.stdout.write("\n".join(page([(first[key], second[key]) for key in common], options.metric)) + "\n")
    return 0


def page(pairs: Sequence[tuple[Row, Row]], metric: str) -> list[str]:
    same = sum(one.answer == other.answer for one, other in pairs)
    header = ["signal", "AUROC", "in the second", "difference", "95% interval", "median shift", "spread", "decided otherwise"]
    wrong = tuple(np.array([pair[side].metrics[metric] < 1 for pair in pairs]) for side in (0, 1))
    lines = []
    for name in sorted(pairs[0][0].signals):
        scores = tuple(np.array([_score(pair[side], name) for pair in pairs]) for side in (0, 1))
        lines.append([name, *_compared(scores[0], scores[1], wrong[0], wrong[1])])
    return [f"{len(pairs)} questions, {same} with the same answer.", "", *table(header, lines)]


def _compared(
    a: NDArray[np.float64], b: NDArray[np.float64], wrong_a: NDArray[np.bool_], wrong_b: NDArray[np.bool_]
) -> list[str]:
    drawn = np.random.default_rng(0).integers(0, len(a), (DRAWS, len(a)))
    differences = [_difference(a[draw], b[draw], wrong_a[draw], wrong_b[draw]) for draw in drawn]
    low, high = np.nanquantile(differences, [0.025, 0.975])
    both = np.isfinite(a) & np.isfinite(b)
    middle = float(np.median(a[both]))
    return [
        f"{auroc(a, wrong_a) or np.nan:.4f}",
        f"{auroc(b, wrong_b) or np.nan:.4f}",
        f"{_difference(a, b, wrong_a, wrong_b):+.4f}",
        f"{low:+.4f} to {high:+.4f}",
        f"{np.median(abs(a[both] - b[both])):.4f}",
        f"{a[both].std():.3f}",
        f"{np.mean((a > middle) != (b > middle)):.1%}",
    ]


def _difference(
    a: NDArray[np.float64], b: NDArray[np.float64], wrong_a: NDArray[np.bool_], wrong_b: NDArray[np.bool_]
) -> float:
    one, other = auroc(a, wrong_a), auroc(b, wrong_b)
    return float("nan") if one is None or other is None else other - one


def _score(row: Row, signal: str) -> float:
    """What could not be measured counts as most uncertain, as in a gate."""
    score = row.signals[signal]["score"]
    return float("inf") if score is None else float(score)


def _rows(run: Path) -> dict[str, Row]:
    return {row.question_id: row for row in read_rows(run) if row.method == "panel" and not row.failed}


if __name__ == "__main__":
    sys.exit(main())
