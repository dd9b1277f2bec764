"""A study as a picture: how far each variant is from the full method (a forest plot), or quality over what was varied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnothi.errors import counted
from gnothi.report.comparison import Comparison
from gnothi.report.figures.drawing import COLOURS, MARKERS, new_figure, save_figure, style
from gnothi.report.numbers import SIGNIFICANT, share
from gnothi.reproduce.ablation import Line, Table

_NAMES = {"em": "exact match", "f1": "F1", "accuracy": "accuracy", "retrievals": "searches a question"}
_WIDE = 8
"""From this ratio of the greatest to the least value on, an axis is logarithmic."""


def save(table: Table, path: Path) -> None:
    """Raises MissingDependency or InvalidSetting (an ending it cannot write)."""
    placed = [(variant.at, variant) for variant in table.variants if variant.at is not None]
    with style("the picture of a study"):
        if table.axis and placed:
            measures = [table.metric, *(["retrievals"] if _moves([one for _, one in placed], "retrievals") else [])]
            figure = new_figure(4.4 * len(measures), 3.4)
            for axes, measure in zip(figure.subplots(1, len(measures), squeeze=False)[0], measures, strict=True):
                _curves(axes, table, placed, measure)
            figure.suptitle(f"{counted(table.questions, 'question')} of {table.dataset}, 95% intervals", fontsize=9)
        else:
            compared = [(one, test) for one in table.variants if (test := (one.difference or {}).get(table.metric))]
            figure = new_figure(6.4, 1.3 + 0.3 * max(len(compared), 1))
            _forest(figure.subplots(), table, compared)
        save_figure(figure, path)


def _forest(axes: Any, table: Table, compared: Sequence[tuple[Line, Comparison]]) -> None:
    full = next(one for one in table.variants if one.label == table.full)
    for place, (_, test) in enumerate(compared):
        low, high = test.interval or (test.difference, test.difference)
        sure = test.p_holm < SIGNIFICANT
        colour = COLOURS[1] if sure and test.difference < 0 else COLOURS[2] if sure else "#666666"
        axes.plot([low, high], [place, place], color=colour, lw=1.6)
        axes.plot([test.difference], [place], "o", color=colour, mfc=colour if sure else "white", ms=6)
    axes.axvline(0, color="#444444", lw=0.8)
    axes.set_yticks(range(len(compared)), [variant.label for variant, _ in compared])
    axes.set_ylim(max(len(compared), 1) - 0.5, -0.5)
    axes.set_xlabel(
        f"{_NAMES[table.metric]} less that of {full.label} ({share(full.means[table.metric])}), 95% intervals; filled: "
        "p < .05 (Holm)",
        fontsize=8,
    )
    axes.set_title(
        f"{table.title}: {counted(table.questions, 'question')} of {table.dataset}", fontsize=9, loc="left", wrap=True
    )
    axes.tick_params(labelsize=9)
    axes.grid(axis="x", alpha=0.3)
    values = axes.secondary_yaxis("right")
    values.set_yticks(range(len(compared)), [share(variant.means[table.metric]) for variant, _ in compared], fontsize=8)
    values.tick_params(length=0)
    values.spines["right"].set_visible(False)


def _moves(variants: Sequence[Line], measure: str) -> bool:
    """Whether what is varied changes it within a series."""
    by_series: dict[str, set[float]] = {}
    for variant in variants:
        by_series.setdefault(variant.series, set()).add(round(variant.means[measure] or 0.0, 2))
    return any(len(values) > 1 for values in by_series.values())


def _curves(axes: Any, table: Table, placed: Sequence[tuple[float, Line]], measure: str) -> None:
    """A line with intervals for each series."""
    for number, series in enumerate(dict.fromkeys(variant.series for _, variant in placed)):
        points = sorted(
            (at, value, *(one.intervals[measure] or (value, value)))
            for at, one in placed
            if one.series == series and (value := one.means[measure]) is not None
        )
        axes.errorbar(
            [at for at, *_ in points],
            [value for _, value, _, _ in points],
            yerr=[[value - low for _, value, low, _ in points], [high - value for _, value, _, high in points]],
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            color=COLOURS[number % len(COLOURS)],
            label=series,
        )
    ticks = sorted({at for at, _ in placed})
    if ticks[0] > 0 and ticks[-1] >= _WIDE * ticks[0]:
        axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel=table.axis, ylabel=_NAMES[measure])
    axes.grid(alpha=0.3)
    if any(variant.series for _, variant in placed):
        axes.legend(fontsize=9)
