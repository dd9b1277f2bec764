"""A study as a picture: how far each variant is from the full method (a forest plot), or quality over what was varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency
from gnothi.report.figures.drawing import MARKERS
from gnothi.report.figures.frontier import COLOURS, save_figure

SIGNIFICANT = 0.05
_NAMES = {"em": "exact match", "f1": "F1", "accuracy": "accuracy", "retrievals": "searches a question"}
_WIDE = 8
"""From this ratio of the greatest to the least value on, an axis is logarithmic."""


def save(found: Mapping[str, Any], path: Path) -> None:
    """Draw a study's document. Raises MissingDependency or InvalidSetting (an ending it cannot write)."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the picture of a study") from error
    placed = [variant for variant in found["variants"] if variant["at"] is not None]
    compared = [variant for variant in found["variants"] if (variant["difference"] or {}).get(found["metric"])]
    with mpl.rc_context({"text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False}):
        if found["axis"] and placed:
            measures = [found["metric"], *(["retrievals"] if _moves(placed, "retrievals") else [])]
            figure = Figure(figsize=(4.4 * len(measures), 3.4), layout="constrained", dpi=120)
            for axes, measure in zip(figure.subplots(1, len(measures), squeeze=False)[0], measures, strict=True):
                _curves(axes, found, placed, measure)
            figure.suptitle(f"{found['questions']} questions of {found['dataset']}, 95 % intervals", fontsize=9)
        else:
            figure = Figure(figsize=(6.4, 1.3 + 0.3 * max(len(compared), 1)), layout="constrained", dpi=120)
            _forest(figure.subplots(), found, compared)
        save_figure(figure, path)


def _forest(axes: Any, found: Mapping[str, Any], compared: Sequence[Mapping[str, Any]]) -> None:
    metric, full = found["metric"], next(one for one in found["variants"] if one["label"] == found["full"])
    for place, variant in enumerate(compared):
        test = variant["difference"][metric]
        low, high = test["interval"] or (test["difference"], test["difference"])
        sure = test["p_holm"] < SIGNIFICANT
        colour = COLOURS[1] if sure and test["difference"] < 0 else COLOURS[2] if sure else "#666666"
        axes.plot([low, high], [place, place], color=colour, lw=1.6)
        axes.plot([test["difference"]], [place], "o", color=colour, mfc=colour if sure else "white", ms=6)
    axes.axvline(0, color="#444444", lw=0.8)
    axes.set_yticks(range(len(compared)), [variant["label"] for variant in compared])
    axes.set_ylim(max(len(compared), 1) - 0.5, -0.5)
    axes.set_xlabel(
        f"{_NAMES[metric]} less that of {full['label']} ({_value(full[metric])}), 95 % intervals; filled: p < .05 (Holm)",
        fontsize=8,
    )
    axes.set_title(f"{found['title']}: {found['questions']} questions of {found['dataset']}", fontsize=9, loc="left", wrap=True)
    axes.tick_params(labelsize=9)
    axes.grid(axis="x", alpha=0.3)
    values = axes.secondary_yaxis("right")
    values.set_yticks(range(len(compared)), [_value(variant[metric]) for variant in compared], fontsize=8)
    values.tick_params(length=0)
    values.spines["right"].set_visible(False)


def _value(quality: float | None) -> str:
    return "–" if quality is None else f"{quality:.3f}"


def _moves(variants: Sequence[Mapping[str, Any]], measure: str) -> bool:
    """Whether what is varied changes it within a series."""
    by_series: dict[str, set[float]] = {}
    for variant in variants:
        by_series.setdefault(variant["series"], set()).add(round(variant[measure] or 0.0, 2))
    return any(len(values) > 1 for values in by_series.values())


def _curves(axes: Any, found: Mapping[str, Any], placed: Sequence[Mapping[str, Any]], measure: str) -> None:
    """A line with intervals for each series."""
    for number, series in enumerate(dict.fromkeys(variant["series"] for variant in placed)):
        own = [one for one in placed if one["series"] == series and one[measure] is not None]
        line = sorted(own, key=lambda one: one["at"])
        middle = [one[measure] for one in line]
        bounds = [one["intervals"][measure] or (one[measure], one[measure]) for one in line]
        below = [value - low for value, (low, _) in zip(middle, bounds, strict=True)]
        above = [high - value for value, (_, high) in zip(middle, bounds, strict=True)]
        axes.errorbar(
            [one["at"] for one in line],
            middle,
            yerr=[below, above],
            marker=MARKERS[number % len(MARKERS)],
            capsize=3,
            color=COLOURS[number % len(COLOURS)],
            label=series,
        )
    ticks = sorted({one["at"] for one in placed})
    if ticks[0] > 0 and ticks[-1] >= _WIDE * ticks[0]:
        axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel=found["axis"], ylabel=_NAMES[measure])
    axes.grid(alpha=0.3)
    if any(variant["series"] for variant in placed):
        axes.legend(frameon=False, fontsize=9)
