"""Whether the guaranteed threshold keeps its promise on recorded outcomes: thousands of calibrations, each held to the truth.

guarantee.py [FILE|RUN ...] [--draws N] [--needed N] [--json]     (default: nq.test and trivia.test of shared/data/recorded)

The recorded questions stand for the population, so the true error of every threshold is known. Three ways to look:

- ``drawn``: calibrated on half as many questions, drawn from the population with replacement. This is the setting of the
  theorem: the promise is broken where the true error of the chosen threshold is above the target, in a share ε of the draws at
  most.
- ``split``: on a random half, drawn without replacement, against the same truth. A half without replacement is closer to the
  whole than independent draws are, so the promise is broken less often.
- ``held out``: the same halves, the error counted on the other half. This is not what is promised: the other half is small, so
  its error is above the target by chance even where the true one is below, and it errs the more the luckier the first half was.
  It is shown raw, and as the share of halves on which the error is *significantly* above the target (exact binomial test at ε).

A draw that is refused breaks no promise; how many are is shown beside. ``slack`` is the 99.9% quantile of the number of
breaches if each had the probability ε, as a share.

``--needed N`` looks at refusals instead: how often samples of N are refused and told a number of questions, its median, and how
often samples of that number then are granted the promise (median over those refusals; aimed at is ``POWER``).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks._data import data_folder
from gnothi.calibration.compare import read
from gnothi.stats.guarantee import promised, questions_needed

TARGETS = (0.1, 0.2, 0.3, 0.4, 0.5)
EPSILON = 0.1
TRIES = 40
DEFAULT = ("nq.test.jsonl", "trivia.test.jsonl")

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """Shares of all draws, but for ``trusted``: the mean share of questions trusted, over all draws (refused: none)."""

    data: str
    signal: str
    target: float
    refused: float
    trusted: float
    drawn: float
    split_refused: float
    split: float
    held_out: float
    held_out_significant: float
    slack: float

    @property
    def within_slack(self) -> bool:
        return max(self.drawn, self.split) <= self.slack


def measure(data: str, signal: str, scores: Floats, wrong: Mask, target: float, draws: int) -> Outcome:
    n, half = len(scores), len(scores) // 2
    counts = dict.fromkeys(("refused", "drawn", "split_refused", "split", "held_out", "held_out_significant"), 0)
    trusted = 0.0
    for draw in range(draws):
        random = np.random.default_rng((draw, 7))
        chosen = random.integers(0, n, half)
        found = promised(scores[chosen], wrong[chosen], target, EPSILON, seed=draw)
        if found is None:
            counts["refused"] += 1
        else:
            below = scores <= found.threshold
            trusted += float(below.mean())
            counts["drawn"] += bool(wrong[below].mean() > target)
        order = random.permutation(n)
        first, second = order[:half], order[half:]
        found = promised(scores[first], wrong[first], target, EPSILON, seed=draw)
        if found is None:
            counts["split_refused"] += 1
            continue
        counts["split"] += bool(wrong[scores <= found.threshold].mean() > target)
        others = wrong[second][scores[second] <= found.threshold]
        if len(others):
            counts["held_out"] += bool(others.mean() > target)
            counts["held_out_significant"] += bool(stats.binom.sf(others.sum() - 1, len(others), target) <= EPSILON)
    shares = {name: count / draws for name, count in counts.items()}
    slack = float(stats.binom.ppf(0.999, draws, EPSILON)) / draws
    return Outcome(data=data, signal=signal, target=target, trusted=trusted / draws, slack=slack, **shares)


@dataclass(frozen=True)
class Advised:
    """Of ``draws`` samples: the share that was ``refused``, of all the share that was told a number (``advised``), the median
    ``needed``, and how often samples of that many are ``granted``, its median and range over the samples; None without any."""

    data: str
    signal: str
    target: float
    refused: float
    advised: float
    needed: float | None
    granted: float | None
    least_granted: float | None
    most_granted: float | None


def advise(data: str, signal: str, scores: Floats, wrong: Mask, target: float, size: int, draws: int) -> Advised:
    refused, needed, granted = 0, [], []
    for draw in range(draws):
        random = np.random.default_rng((draw, 11))
        chosen = random.integers(0, len(scores), size)
        if promised(scores[chosen], wrong[chosen], target, EPSILON, seed=draw) is not None:
            continue
        refused += 1
        number = questions_needed(scores[chosen], wrong[chosen], target, EPSILON)
        if number is None:
            continue
        again = [random.integers(0, len(scores), number) for _ in range(TRIES)]
        found = [promised(scores[one], wrong[one], target, EPSILON, seed=place) for place, one in enumerate(again)]
        needed.append(number)
        granted.append(sum(one is not None for one in found) / TRIES)
    if not needed:
        return Advised(data, signal, target, refused / draws, 0.0, None, None, None, None)
    middle, often = float(np.median(needed)), float(np.median(granted))
    return Advised(data, signal, target, refused / draws, len(needed) / draws, middle, often, min(granted), max(granted))


def recorded() -> list[Path]:
    folder = data_folder("name files or runs") / "recorded"
    return [folder / name for name in DEFAULT]


COLUMNS = {
    "refused": "refused",
    "trusted": "trusted",
    "drawn": "drawn",
    "split": "split",
    "held_out": "held out",
    "held_out_significant": "significant",
}


def _needed(sources: Sequence[Path], targets: Sequence[float], size: int, draws: int, as_json: bool) -> int:
    found = []
    for path in sources:
        replay = read(path)
        for signal in replay.signals:
            for target in targets:
                one = advise(replay.dataset, signal.name, signal.values, replay.never < 1, target, size, draws)
                found.append(one)
                if not as_json:
                    print(" ".join(f"{key}={value}" for key, value in asdict(one).items()), flush=True)  # noqa: T201
    if as_json:
        sys.stdout.write(json.dumps([asdict(one) for one in found], indent=2) + "\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sources", nargs="*", type=Path, metavar="FILE|RUN")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--targets", type=float, nargs="*", default=TARGETS)
    parser.add_argument("--needed", type=int, metavar="N")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()

    def say(line: str) -> None:
        if not given.json:
            print(line, flush=True)  # noqa: T201

    if given.needed:
        return _needed(given.sources or recorded(), given.targets, given.needed, given.draws, given.json)
    say(f"{'data':<14}{'signal':<14}{'target':>6}" + "".join(f"{heading:>12}" for heading in COLUMNS.values()))
    outcomes = []
    for path in given.sources or recorded():
        replay = read(path)
        for signal in replay.signals:
            for target in given.targets:
                one = measure(replay.dataset, signal.name, signal.values, replay.never < 1, target, given.draws)
                outcomes.append(one)
                cells = "".join(f"{getattr(one, name):>12.3f}" for name in COLUMNS)
                say(f"{one.data:<14}{one.signal:<14}{one.target:>6.2f}{cells}{'' if one.within_slack else '  BROKEN'}")
    worst = max(max(one.drawn, one.split) for one in outcomes)
    say(f"{given.draws} draws each, epsilon {EPSILON}: broken in at most {worst:.3f} (allowed {outcomes[0].slack:.3f})")
    if given.json:
        sys.stdout.write(json.dumps([asdict(one) | {"kept": one.within_slack} for one in outcomes], indent=2) + "\n")
    return 0 if all(one.within_slack for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
