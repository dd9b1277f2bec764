"""Methods beside each other: searches too many and too few, risk against coverage, quality against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gnothi.report.document import Document
from gnothi.report.figures.drawing import INK, ON, SERIES, Picture, Styles, draw, shortened, thinned
from gnothi.report.numbers import interval, number, share
from gnothi.report.selective import Selective
from gnothi.report.summary import Method
from gnothi.report.words import STAGES
from gnothi.stats.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cost = tuple[float | None, Interval | None]


def search_errors(section: str, methods: Sequence[Method]) -> Picture | None:
    """How often each method searched although the one that never searches was right, and did not although it was wrong."""
    searched = [(method.method, method.search) for method in methods if method.search and method.search.n]
    if not any(search.over_search.count + search.under_search.count for _, search in searched):
        return None

    def paint(axes: Axes) -> None:
        places, most = range(len(searched)), 0.1
        for sign, colour, summary, values in (
            (1, SERIES[1], "over-search", [search.over_search.share or 0.0 for _, search in searched]),
            (-1, SERIES[0], "under-search", [search.under_search.share or 0.0 for _, search in searched]),
        ):
            bars = axes.barh(places, [sign * value for value in values], color=colour, alpha=0.85, height=0.6, label=summary)
            axes.bar_label(bars, [f"{value:.2f}" if value else "" for value in values], padding=3, fontsize=8)
            most = max(most, *values)
        axes.axvline(0, color=INK, lw=0.8)
        axes.set(xlabel="share of all questions", xlim=(-1.25 * most, 1.25 * most), yticks=places)
        axes.set_yticklabels([shortened(name, 24) for name, _ in searched])
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.invert_yaxis()
        axes.grid(color=INK, alpha=0.12, axis="x")

    rows = [
        [name, *(f"{missed.count} ({share(missed.share)})" for missed in (search.over_search, search.under_search))]
        for name, search in searched
    ]
    summary = "; ".join(f"{name}: over {over}, under {under}" for name, over, under in rows)
    return Picture(
        "Searched too much, searched too little",
        f"Over-search, to the right: searched although {searched[0][1].closed_book}, which never searches, was right. "
        "Under-search, to the left: did not search although it was wrong.",
        draw(
            f"{section}-search",
            f"Over-search and under-search. {summary}",
            paint,
            2,
            height=max(1.6, 0.75 + 0.3 * len(searched)),
        ),
        ("method", "over-search", "under-search"),
        rows,
    )


def reached(section: str, methods: Sequence[Method]) -> Picture | None:
    """How far each method's answers came: the search and the reader told apart."""
    stages = [(method.method, method.reached) for method in methods if method.reached]
    present = [stage for stage in STAGES if any(one.stages[stage] for _, one in stages)]
    if not any(method.retrieval_rate for method in methods) or not present:
        return None

    def paint(axes: Axes) -> None:
        places, ends = range(len(stages)), [0] * len(stages)
        for stage in present:
            counts = [one.stages[stage] for _, one in stages]
            colour = SERIES[list(STAGES).index(stage)]
            bars = axes.barh(places, counts, left=ends, color=colour, alpha=0.85, height=0.6, label=STAGES[stage])
            axes.bar_label(bars, [str(count) if count else "" for count in counts], label_type="center", fontsize=8, color=ON)
            ends = [end + count for end, count in zip(ends, counts, strict=True)]
        axes.set(xlabel="questions", yticks=places)
        axes.set_yticklabels([shortened(name, 24) for name, _ in stages])
        axes.invert_yaxis()

    rows = [[name, *(str(one.stages[stage]) for stage in present)] for name, one in stages]
    summary = "; ".join(
        f"{name}: {', '.join(f'{count} {STAGES[stage]}' for count, stage in zip(counts, present, strict=True))}"
        for name, *counts in rows
    )
    height = max(1.6, 0.75 + 0.3 * len(stages))
    return Picture(
        "Where answers are lost",
        "The search did not find the answer, or the model read it and answered wrongly.",
        draw(f"{section}-reached", f"How far answers came. {summary}", paint, len(present), 1, height),
        ("method", *(STAGES[stage] for stage in present)),
        rows,
    )


def risk(section: str, curves: Sequence[Selective], styles: Styles) -> Picture | None:
    """The share of wrong answers as ever more of the most certain are accepted, for methods that give an uncertainty."""
    curves = [one for one in curves if len(one.curve) > 1]
    if not curves:
        return None

    def paint(axes: Axes) -> None:
        for one in curves:
            line = thinned(one.curve)
            x, y = [point.coverage for point in line], [point.risk for point in line]
            # From the first step on: before it, nothing can be accepted.
            axes.step(x, y, where="post", color=styles.colour(one.method), lw=1.6, label=shortened(one.method))
            axes.plot(x[:1], y[:1], styles.marker(one.method), color=styles.colour(one.method), ms=4)
        highest = max(point.risk for one in curves for point in one.curve)
        axes.set(xlabel="share of answers given, most certain first", ylabel="share of them wrong", xlim=(0, 1.01))
        axes.set_ylim(0, min(1.01, highest * 1.1 + 0.02))
        axes.grid(color=INK, alpha=0.12)

    rows = [[one.method, *(share(at.risk) for at in one.at), share(one.risk), share(one.aurc)] for one in curves]
    summary = "; ".join(f"{row[0]}: {row[-2]} wrong when all are given, area {row[-1]}" for row in rows)
    return Picture(
        "Risk against coverage",
        "If only the most certain answers were given, how many of them would be wrong? Exact match; lower is better.",
        draw(f"{section}-risk", f"Risk against coverage. {summary}", paint, len(curves), 3),
        ("method", *(f"{at.wanted:.0%} given" for at in curves[0].at), "all given", "area (AURC)"),
        rows,
    )


def quality(section: str, document: Document, styles: Styles) -> Picture | None:
    """Exact match against mean searches per question, with intervals."""
    costs = {method.method: (method.retrievals, method.intervals["retrievals"]) for method in document.methods}
    return _against(section, "quality", "Quality against searches", "searches per question", document.methods, costs, styles)


def spending(section: str, document: Document, styles: Styles) -> Picture | None:
    """Exact match against what a thousand questions cost; against tokens where there are no prices."""
    costs: dict[str, Cost] = {one.method: (one.tokens, None) for one in document.costs}
    if document.prices is None:
        return _against(section, "cost", "Quality against tokens", "tokens per question", document.methods, costs, styles)
    costs = {one.method: (one.money.per_thousand, one.money.interval) for one in document.costs if one.money}
    currency = f" ({document.prices.currency})" if document.prices.currency else ""
    axis = f"cost of 1,000 questions{currency}"
    return _against(section, "cost", "Quality against cost", axis, document.methods, costs, styles)


def _against(
    section: str, name: str, title: str, axis: str, methods: Sequence[Method], costs: Mapping[str, Cost], styles: Styles
) -> Picture | None:
    points = [
        (method.method, cost, spread, method.em, method.intervals["em"])
        for method in methods
        for cost, spread in [costs[method.method]]
        if method.em is not None and cost is not None
    ]
    if len({cost for _, cost, *_ in points}) < 2:  # one place on the axis compares nothing
        return None

    def paint(axes: Axes) -> None:
        for method, x, across, y, along in points:
            colour = styles.colour(method)
            if along:
                axes.plot((x, x), along, color=colour, lw=1)
            if across:
                axes.plot(across, (y, y), color=colour, lw=1)
            axes.plot([x], [y], styles.marker(method), color=colour, label=shortened(method), ms=7)
        axes.set(xlabel=axis, ylabel="exact match")
        axes.set_xlim(left=min(-0.02 * axes.get_xlim()[1], 0))
        axes.grid(color=INK, alpha=0.12)

    rows = [[method, number(cost), share(em), interval(spread)] for method, cost, _, em, spread in points]
    summary = "; ".join(f"{row[0]}: {row[2]} at {row[1]}" for row in rows)
    return Picture(
        title,
        "Further up is better, further left is cheaper. Lines: 95% intervals.",
        draw(f"{section}-{name}", f"Exact match against {axis}. {summary}", paint, len(points), 3),
        ("method", axis, "exact match", "95% interval"),
        rows,
    )
