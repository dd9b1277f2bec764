"""What a learnt gate gains on recorded outcomes of a real model, and how good a feature would have to be that it lacks.

learned.py [FOLDER] [--price P] [--json]     (default: shared/data/recorded)
learned.py --runs RUN... [--price P] [--metric accuracy] [--json]

Learnt on each data set's ``dev``, judged once on its ``test``. Then, as an oracle, with one feature more on both: a judge that
tells right answers of evidence (or of memory) from wrong ones with a given AUROC, drawn from the labels. The ``needed`` AUROC
is the lowest tried from which on the gain over the better of never and always lies above 0 by its interval. With ``--runs`` of
the method ``cascade`` without a gate, each question is judged by what the others of its run taught.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks._data import data_folder
from benchmarks._shared import publish, say, table
from gnothi.calibration.compare import read
from gnothi.calibration.learned import AFTER, learn
from gnothi.calibration.learned_records import Learned, Prices
from gnothi.calibration.replay import Replay, Scores
from gnothi.report.numbers import between, share, signed
from gnothi.training.gate import recorded

SETS = ("nq", "trivia", "hotpotqa", "2wikimultihopqa")
LEVELS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True)
class Needed:
    """``gains`` by the AUROC of a judge of ``whose`` answers, with intervals; ``needed`` None: no level was enough."""

    data: str
    source: str
    needed: float | None
    gains: Mapping[str, tuple[float, float, float]]


def judged_by(replay: Replay, source: str, auroc: float, seed: int) -> Replay:
    """With one signal more: normal scores, apart by what gives this AUROC."""
    right = (replay.never if source == "memory" else replay.always) >= 1
    apart = np.sqrt(2) * stats.norm.ppf(auroc)
    values = np.random.default_rng(seed).normal(size=replay.n) + apart * right
    judge = Scores("judge", values, ~right, np.ones(replay.n, dtype=bool), source)
    return replace(replay, signals=(*replay.signals, judge))


def needed(data: str, learnt: Replay, judged: Replay | None, source: str) -> Needed:
    """``judged`` None: each question of ``learnt`` by what the others taught."""
    gains: dict[str, tuple[float, float, float]] = {}
    enough: float | None = None
    for level in LEVELS:
        others = [] if judged is None else [judged_by(judged, source, level, 2)]
        (found,) = learn([judged_by(learnt, source, level, 1)], others)
        after = found.ways[AFTER]
        low, high = after.gain_interval or (0.0, 0.0)
        gains[f"{level:g}"] = (after.gain, low, high)
        if low <= 0:
            enough = None
        elif enough is None:
            enough = level
    return Needed(data, source, enough, gains)


def rows(gates: Sequence[Learned]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for one in gates:
        lines.append((one.dataset, "never", share(one.ends.never), "", ".000", ""))
        lines.append(("", "always", share(one.ends.always), "", "1.000", ""))
        lines.append(("", "oracle", share(one.ends.oracle), "", share(one.ends.helped), ""))
        if (best := one.best_signal) is not None:
            lines.append(("", best.signal, share(best.accuracy), between(best.interval), share(best.searches), ""))
        for way, now in one.ways.items():
            low, high = now.gain_interval or (0.0, 0.0)
            gain = f"{signed(now.gain)} ({signed(low)} to {signed(high)})"
            lines.append(("", way, share(now.accuracy), between(now.interval), share(now.searches), gain))
    return lines


def judges_told(judges: Sequence[Needed]) -> list[str]:
    told = [
        (one.data, one.source, *(f"{signed(gain)}{'*' if low > 0 else ''}" for gain, low, _ in one.gains.values()))
        for one in judges
    ]
    levels = (f"{level:g}" for level in LEVELS)
    return ["with a judge of that AUROC: gain (interval)", *table(("", "judge of", *levels), told)]


def of_runs(runs: Sequence[Path], metric: str, price: float, json: bool) -> int:
    replays = [recorded(run, metric) for run in runs]
    found = [learn([replay], [], Prices(price))[0] for replay in replays]
    lines = [f"price {price:g}, each question by what the others of its run taught"]
    lines += table(("", "", "accuracy", "", "searches", "gain"), rows(found))
    judges = [needed(replay.source, replay, None, source) for replay in replays for source in ("evidence", "memory")]
    publish(
        {"found": [asdict(one) for one in found], "judges": [asdict(one) for one in judges]}, lines + judges_told(judges), json
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--price", type=float, default=0.05, help="of a search, in right answers [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--runs", nargs="+", type=Path, help="runs of the method cascade without a gate")
    parser.add_argument("--metric", default="accuracy", help="of runs: when an answer is right [%(default)s]")
    given = parser.parse_args()
    if given.runs:
        return of_runs(given.runs, given.metric, given.price, given.json)
    folder = given.folder or data_folder("name a FOLDER") / "recorded"
    replays = {name: [read(folder / f"{name}.{part}.jsonl") for part in ("dev", "test")] for name in SETS}
    lines: list[str] = []
    document: dict[str, object] = {}
    for price in dict.fromkeys((0.0, given.price)):
        found = [learn([dev], [test], Prices(price))[0] for dev, test in replays.values()]
        pooled = learn([dev for dev, _ in replays.values()], [test for _, test in replays.values()], Prices(price))
        for title, ones in (("each on its own dev", found), ("on all four dev together", pooled)):
            lines += [f"price {price:g}, learnt {title}"]
            lines += table(("", "", "accuracy", "", "searches", "gain"), rows(ones))
            document[f"price {price:g}, {title}"] = [asdict(one) for one in ones]
    judges = []
    for name, (dev, test) in replays.items():
        say(f"judges of {name}")
        judges += [needed(name, dev, test, source) for source in ("evidence", "memory")]
    lines += judges_told(judges)
    document["judges"] = [asdict(one) for one in judges]
    publish(document, lines, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
