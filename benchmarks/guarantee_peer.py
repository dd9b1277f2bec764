"""The guaranteed threshold beside MAPIE's risk control: how often each refuses, how much it trusts, how often it is wrong.

guarantee_peer.py FILE SIGNAL --target R [--draws N]     (needs MAPIE: pip install mapie)

Each draw takes half as many of the recorded questions, with replacement; all get the same ones, and both split procedures set
the same number aside. MAPIE is given the scores' ranks as probabilities and 41 thresholds on them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnothi.calibration.compare import read
from gnothi.stats.guarantee import EPSILON, SPLIT, promised

THRESHOLDS = 41
PEERS = {"mapie, split fixed sequence": "split_fixed_sequence", "mapie, bonferroni-holm": "bonferroni_holm"}

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def peer(control: Any, sure: Floats, right: Mask, target: float, method: str, aside: Mask) -> float | None:
    """The lowest valid threshold on how sure the model is; None where there is none."""
    controller = control.BinaryClassificationController(
        predict_function=lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]),
        risk=control.precision,
        target_level=1 - target,
        confidence_level=1 - EPSILON,
        list_predict_params=np.linspace(0, 1, THRESHOLDS),
        fwer_method=method,
    )
    if method == "split_fixed_sequence":
        controller.learn_fixed_sequence_order(sure[aside, None], right[aside].astype(int))
        sure, right = sure[~aside], right[~aside]
    controller.calibrate(sure[:, None], right.astype(int))
    valid = np.asarray(controller.valid_predict_params)
    return float(valid.min()) if valid.size else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, metavar="FILE")
    parser.add_argument("signal")
    parser.add_argument("--target", type=float, required=True)
    parser.add_argument("--draws", type=int, default=100)
    given = parser.parse_args()
    try:
        control = importlib.import_module("mapie.risk_control")
    except ImportError:
        sys.exit("needs MAPIE: pip install mapie")
    warnings.filterwarnings("ignore")  # it warns wherever it finds nothing
    replay = read(given.source)
    scores = next(signal.values for signal in replay.signals if signal.name == given.signal)
    wrong, n = replay.never < 1, len(scores)
    sure = 1 - np.argsort(np.argsort(scores, kind="stable")) / n
    tally = {name: {"refused": 0.0, "trusted": 0.0, "broken": 0.0} for name in ("gnothi", *PEERS)}
    for draw in range(given.draws):
        random = np.random.default_rng((draw, 7))
        chosen = random.integers(0, n, n // 2)
        aside = random.permutation(n // 2) < round(SPLIT * (n // 2))
        found = promised(scores[chosen], wrong[chosen], given.target, EPSILON, seed=draw)
        trusted: dict[str, Mask | None] = {"gnothi": None if found is None else scores <= found.threshold}
        for name, method in PEERS.items():
            threshold = peer(control, sure[chosen], ~wrong[chosen], given.target, method, aside)
            trusted[name] = None if threshold is None else sure >= threshold
        for name, below in trusted.items():
            one = tally[name]
            one["refused"] += (below is None) / given.draws
            if below is not None and below.any():
                one["trusted"] += float(below.mean()) / given.draws
                one["broken"] += float(wrong[below].mean() > given.target) / given.draws
    rounded = {name: {key: round(value, 3) for key, value in one.items()} for name, one in tally.items()}
    sys.stdout.write(json.dumps(rounded, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
