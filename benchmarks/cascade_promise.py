"""Whether a cascade keeps its promises, of errors among answers given and of harm: 1,000 calibrations, each held to the truth.

cascade_promise.py [LEARN JUDGE ...] [--draws N] [--json]     (default: dev and test of the four recorded data sets)

Pairs of recorded outcomes, tables or runs. A gate is learnt on the first of a pair; the second stands for the population, so
the true errors and harm at any limit are known. Each draw takes as many questions from it, with replacement, and chooses the
limits on them. ``errors`` and ``harm`` are promised alone with each target, then both together: a draw breaks its promise where
the true share is above the target, and may do so with ε = 0.1. ``slack``: the 99.9% quantile of the share of breaches if each
had the probability ε. A draw that is refused breaks nothing; ``given``: the mean share of answers given, over the others.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks._data import data_folder
from benchmarks._shared import publish, say, table
from gnothi.calibration.compare import read
from gnothi.calibration.learned import gate_of, known_of
from gnothi.calibration.learned_records import Prices
from gnothi.errors import PromiseRefused
from gnothi.report.numbers import share
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.cascade import Cascade, promise
from gnothi.stats.guarantee import EPSILON

SETS = ("nq", "trivia", "hotpotqa", "2wikimultihopqa")
PRICE = 0.02
TARGETS: tuple[tuple[float | None, float | None], ...] = (
    *((error, None) for error in (0.1, 0.2, 0.3, 0.4, 0.5)),
    *((None, harm) for harm in (0.02, 0.05, 0.1, 0.2)),
    (0.2, 0.05),
    (0.4, 0.2),
    (0.5, 0.3),
)


@dataclass(frozen=True)
class Shares:
    """Shares of all draws; ``given`` of the draws that were not refused."""

    data: str
    error: float | None
    harm: float | None
    refused: float
    broken: float
    given: float | None
    slack: float


def measure(
    data: str, gate: Cascade, x: Floats, first: Mask, second: Mask, targets: tuple[float | None, float | None], draws: int
) -> Shares:
    error, harm = targets
    refused, broken, given = 0, 0, []
    for draw in range(draws):
        chosen = np.random.default_rng((draw, 13)).integers(0, len(x), len(x))
        if not gate(x[chosen]).second.any():
            refused += 1
            continue
        try:
            found = promise(gate, x[chosen], first[chosen], second[chosen], error, harm, EPSILON, draw)
        except PromiseRefused:
            refused += 1
            continue
        decided = found.cascade(x)
        wrong = ~np.where(decided.second, second, first)
        harmed = first & ~second
        given.append(float(decided.answered.mean()))
        broken += bool(
            (error is not None and decided.answered.any() and wrong[decided.answered].mean() > error)
            or (harm is not None and decided.second.any() and harmed[decided.second].mean() > harm)
        )
    slack = float(stats.binom.ppf(0.999, draws, EPSILON)) / draws
    return Shares(data, error, harm, refused / draws, broken / draws, float(np.mean(given)) if given else None, slack)


def recorded() -> list[Path]:
    folder = data_folder("name pairs of files or runs") / "recorded"
    return [folder / f"{name}.{part}.jsonl" for name in SETS for part in ("dev", "test")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", type=Path, metavar="LEARN JUDGE")
    parser.add_argument("--draws", type=int, default=1000, help="calibrations of each target [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    if len(given.pairs) % 2:
        parser.error(
            f"got {len(given.pairs)} files or runs, expected pairs: one to learn on, one that stands for the population"
        )
    paths = given.pairs or recorded()
    found = []
    for learnt, judged in zip(paths[::2], paths[1::2], strict=True):
        say(str(judged))
        one, population = read(learnt), read(judged)
        gate = gate_of([one], Prices(PRICE), [population])
        x, first, second = known_of(gate, population), population.never >= 1, population.always >= 1
        found += [measure(population.dataset, gate.cascade, x, first, second, targets, given.draws) for targets in TARGETS]
    rows = [
        (
            one.data,
            "" if one.error is None else f"{one.error:g}",
            "" if one.harm is None else f"{one.harm:g}",
            share(one.refused),
            share(one.broken),
            share(one.given),
        )
        for one in found
    ]
    slack = share(found[0].slack)
    lines = table(
        ("", "errors at most", "harm at most", "refused", f"broken (at most .1, or {slack} by chance)", "given"), rows
    )
    publish({"epsilon": EPSILON, "draws": given.draws, "kept": [asdict(one) for one in found]}, lines, given.json)
    return 0 if all(one.broken <= one.slack for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
