"""The picture of the taught benchmark's page: what memory, searching, the best gate and the oracle come to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._taught_facts import GRADES
from benchmarks._taught_plan import Plan
from benchmarks._taught_tables import BEST, Gated, gated, kinds
from gnothi.stats.arrays import Floats, Mask
from gnothi.stats.frontier import oracle
from gnothi.stats.intervals import mean_interval

COLOURS = {"never": "#9ca3af", "always": "#c2410c", "gate": "#2a9d8f", "oracle": "#1f2937"}


def draw(plans: Sequence[Plan], out: Path) -> None:
    """Left: by how often a fact was taught, complete library. Right: by library. Bars are 95 % intervals."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
    every = {kind: gated(plans, kind)[BEST] for kind in kinds(plans)}
    first = next(iter(every.values()))
    groups = [(f"{grade} times", _lines(first, first.taught == grade)) for grade in GRADES]
    _bars(left, groups, f"how often an epoch held the fact ({next(iter(every))} library)")
    _bars(right, [(kind, _lines(one)) for kind, one in every.items()], "library")
    left.set_ylabel("answers right")
    left.legend(loc="upper left", fontsize=9)
    figure.savefig(out, metadata={"Date": None})


def _lines(one: Gated, kept: Mask | None = None) -> dict[str, Floats]:
    lines = {"never": one.never, "always": one.always, "gate": one.ours, "oracle": oracle(one.never, one.always)}
    return {name: values if kept is None else values[kept] for name, values in lines.items()}


def _bars(axis: Any, groups: Sequence[tuple[str, dict[str, Floats]]], label: str) -> None:
    for number, (name, colour) in enumerate(COLOURS.items()):
        means = [float(lines[name].mean()) for _, lines in groups]
        ends = [mean_interval(lines[name].tolist()) for _, lines in groups]
        error = [[mean - end.low if end else 0, end.high - mean if end else 0] for mean, end in zip(means, ends, strict=True)]
        places = [place + (number - 1.5) * 0.2 for place in range(len(groups))]
        axis.bar(places, means, 0.19, color=colour, yerr=np.array(error).T, ecolor="#6b7280", label=name)
    axis.set_xticks(range(len(groups)), [name for name, _ in groups])
    axis.set_xlabel(label)
    axis.set_ylim(0, 1)
