"""The report's pictures, each with its numbers as a table beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gnothi.calibration.verdicts import Truth, paired_scores
from gnothi.report.figures.drawing import HEIGHT, INK, MARKERS, SERIES, Picture, draw, identifier, shortened
from gnothi.runs.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = ("-", "--", "-.")
POINTS = 300
"""Points of a line that are drawn; CSV and JSON have all of them."""
_ROWS = 11
Document = Mapping[str, Any]


def share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 2) + 0.0:.0%}"  # adding 0 turns -0 into 0


def interval(value: Sequence[float] | None) -> str:
    return "" if value is None else f"[{value[0]:.3f}, {value[1]:.3f}]"


def number(value: float | None) -> str:
    return (
        "–"
        if value is None
        else f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.2f}"
        if abs(value) >= 0.1
        else f"{value:.3g}"
    )


def metric_name(metric: str) -> str:
    """A metric in words."""
    return {"em": "exact match", "f1": "F1", "contained": "answers that contain a right one"}.get(metric, metric)


class Styles:
    """A colour and a marker for each method, the same in all pictures of a section."""

    def __init__(self, document: Document) -> None:
        self._places = {method["method"]: place for place, method in enumerate(document["methods"])}

    def colour(self, method: str) -> str:
        return SERIES[self._places.get(method, 0) % len(SERIES)]

    def marker(self, method: str) -> str:
        return MARKERS[(self._places.get(method, 0) + self._places.get(method, 0) // len(SERIES)) % len(MARKERS)]


# --- gates -----------------------------------------------------------------------------------------------------------


def frontier(section: str, document: Document) -> Picture | None:
    """Accuracy against retrieval rate: every threshold of every signal, each method as a point, the oracle."""
    gates = document["gates"]
    if gates is None:
        return None
    styles = Styles(document)
    # A method's line has its point's colour, unless it measured several.
    shared = len({signal["method"] for signal in gates["signals"].values()}) < len(gates["signals"])

    def paint(axes: Axes) -> None:
        axes.plot([0, 1], [gates["never"], gates["always"]], ":", color=INK, alpha=0.6, lw=1.2, label="retrieving at random")
        for number, (name, signal) in enumerate(gates["signals"].items()):
            line = thinned(signal["frontier"])
            colour = SERIES[number % len(SERIES)] if shared else styles.colour(signal["method"])
            x, y = [point["retrieval_rate"] for point in line], [point["accuracy"] for point in line]
            dashes = LINES[number // len(SERIES) % len(LINES)] if shared else "-"
            axes.plot(
                x,
                y,
                dashes,
                color=colour,
                lw=1.5,
                label=shortened(name) if shared else f"any threshold of {shortened(name, 22)}",
            )
            if chosen := signal["chosen"]:
                axes.plot([chosen["retrieval_rate"]], [chosen["accuracy"]], "+", color=colour, ms=10, mew=2)
        for point in gates["points"]:
            colour, x, y = styles.colour(point["method"]), point["retrieval_rate"], point["accuracy"]
            if point["interval"]:
                axes.plot((x, x), point["interval"], color=colour, lw=0.8, alpha=0.5)
            axes.plot([x], [y], styles.marker(point["method"]), color=colour, ms=7, label=shortened(point["method"]))
        best = [gates["oracle_retrieval_rate"]], [gates["oracle"]]
        axes.plot(*best, "*", color=INK, ms=11, label="oracle of never and always")
        axes.set(xlabel="share of questions with a search", ylabel=metric_name(gates["metric"]), xlim=(-0.03, 1.03))
        axes.grid(color=INK, alpha=0.12)

    rows = [
        [name, share(signal["auroc"]), *(share(_reached(signal["frontier"], rate)) for rate in (0.1, 0.25, 0.5, 0.75, 0.9))]
        for name, signal in gates["signals"].items()
    ]
    rows += [[f"{point['method']} (method)", "", *_at_its_place(point)] for point in gates["points"]]
    label = "; ".join(
        f"{point['method']}: {share(point['accuracy'])} at {share(point['retrieval_rate'])}" for point in gates["points"]
    )
    entries = 2 + len(gates["signals"]) + len(gates["points"])
    svg = draw(
        f"{section}-frontier",
        f"{metric_name(gates['metric']).capitalize()} against the share of questions with a search. {label}; "
        f"oracle: {share(gates['oracle'])}",
        paint,
        entries,
    )
    return Picture(
        "Accuracy against retrieval rate",
        f"Further up is better, further left cheaper. Lines: {gates['names']['never']} below a threshold of the signal and "
        f"{gates['names']['always']} above it, for every threshold. Crosses: the threshold chosen on other questions than it "
        "is judged on. Points: the methods as they ran, which may do more than choose between these two.",
        svg,
        ("signal or method", "AUROC", "at 10 % retrieval", "25 %", "50 %", "75 %", "90 %"),
        rows,
    )


def _reached(line: Sequence[Mapping[str, float]], rate: float) -> float | None:
    """The accuracy of the threshold that retrieves most, up to a rate."""
    within = [point for point in line if point["retrieval_rate"] <= rate]
    return max(within, key=lambda point: point["retrieval_rate"])["accuracy"] if within else None


def _at_its_place(point: Mapping[str, Any]) -> list[str]:
    """A method's accuracy in the column nearest to its retrieval rate from above."""
    rates = (0.1, 0.25, 0.5, 0.75, 0.9)
    place = min(range(len(rates)), key=lambda column: abs(rates[column] - point["retrieval_rate"]))
    return [f"{share(point['accuracy'])} at {point['retrieval_rate']:.0%}" if column == place else "" for column in range(5)]


def thinned(line: Sequence[Any]) -> Sequence[Any]:
    """The first and last point and evenly many between them."""
    if len(line) <= POINTS:
        return line
    return [line[place] for place in np.linspace(0, len(line) - 1, POINTS).round().astype(int)]


def search_errors(section: str, document: Document) -> Picture | None:
    """How often each method searched without need, and did not though it should have."""
    shown = [
        (method["method"], method["search"]) for method in document["methods"] if method["search"] and method["search"]["n"]
    ]
    if not shown:
        return None
    closed = shown[0][1]["closed_book"]

    def paint(axes: Axes) -> None:
        places = range(len(shown))
        for label, sign, colour, said in (
            ("over_search", 1, SERIES[1], "searched without need"),
            ("under_search", -1, SERIES[0], "should have searched"),
        ):
            values = [search[label]["share"] for _, search in shown]
            bars = axes.barh(places, [sign * value for value in values], color=colour, alpha=0.85, height=0.6, label=said)
            axes.bar_label(bars, [f"{value:.2f}" if value else "" for value in values], padding=3, fontsize=8)
        axes.axvline(0, color=INK, lw=0.8)
        reach = max(0.1, *(search[label]["share"] for _, search in shown for label in ("over_search", "under_search"))) * 1.25
        axes.set(xlabel="share of all questions", xlim=(-reach, reach), yticks=range(len(shown)))
        axes.set_yticklabels([shortened(name, 24) for name, _ in shown])
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.invert_yaxis()
        axes.grid(color=INK, alpha=0.12, axis="x")

    rows = [
        [name, *(f"{search[label]['count']} ({share(search[label]['share'])})" for label in ("over_search", "under_search"))]
        for name, search in shown
    ]
    return Picture(
        "Searched too much, searched too little",
        f"To the right: searched although {closed}, which never searches, was right. To the left: did not search although it "
        "was wrong.",
        draw(
            f"{section}-search",
            "Over-search and under-search. " + "; ".join(f"{row[0]}: over {row[1]}, under {row[2]}" for row in rows),
            paint,
            2,
            height=max(1.6, 0.75 + 0.3 * len(shown)),
        ),
        ("method", "over-search", "under-search"),
        rows,
    )


def distributions(section: str, name: str, rows: Sequence[Row], known: Truth, gate: Mapping[str, Any]) -> Picture | None:
    """The gate's highest scores where the closed-book answer was right and where it was wrong, with the thresholds."""
    return distribution(section, name, gate["signal"], *paired_scores(rows, known), _asked(known), gate, gate["thresholds"])


def distribution(
    section: str,
    name: str,
    signal: str,
    scores: Sequence[float],
    wrong: Sequence[bool],
    asked: str,
    numbers: Mapping[str, Any],
    thresholds: Sequence[float] = (),
) -> Picture | None:
    """Scores where an answer was right and where wrong. ``asked`` says who tells, ``numbers`` holds AUROC and interval."""
    finite = [(score, is_wrong) for score, is_wrong in zip(scores, wrong, strict=True) if np.isfinite(score)]
    if not finite or numbers["auroc"] is None:
        return None
    values = np.array([score for score, _ in finite])
    edges: list[float] = np.histogram_bin_edges(values, bins=min(30, max(5, int(np.sqrt(len(values)) * 1.5)))).tolist()
    groups = {flag: [score for score, is_wrong in finite if is_wrong == flag] for flag in (False, True)}

    def paint(axes: Axes) -> None:
        for flag, colour, label in ((False, SERIES[0], "right"), (True, SERIES[1], "wrong")):
            axes.hist(groups[flag], edges, color=colour, alpha=0.55, label=f"{asked} {label} ({len(groups[flag])})")
        for threshold in thresholds:
            axes.axvline(threshold, color=INK, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
        axes.set(xlabel=f"{signal} (higher: less certain)", ylabel="questions")

    beyond = len(scores) - len(finite)
    text = f"{name}: scores where answers were right and where wrong, AUROC {numbers['auroc']:.3f}" + (
        f"; {beyond} infinite" if beyond else ""
    )
    counts = [np.histogram(groups[flag], edges)[0].tolist() for flag in (False, True)]
    return Picture(
        f"What {name} measures where the model knows and where not",
        f"AUROC {share(numbers['auroc'])} {interval(numbers['interval'])}: chance that a question of the second kind scores "
        "above one of the first. The less the two overlap, the better a threshold can do.",
        draw(f"{section}-distribution-{identifier(name)}", text, paint, 2 + len(thresholds)),
        ("score from", "to", "right", "wrong"),
        [
            [f"{low:.4g}", f"{high:.4g}", str(right), str(missed)]
            for low, high, right, missed in zip(edges[:-1], edges[1:], *counts, strict=True)
            if right or missed
        ],
    )


def _asked(known: Truth) -> str:
    return "familiarity says" if known.source == "familiarity" else f"{known.source} was"


def calibration(section: str, document: Document) -> Picture | None:
    """How often the closed-book answer was wrong against the probability that the gate's score gives it (cross-fitted)."""
    curves = document["reliability"]
    if not curves:
        return None
    styles = Styles(document)

    def paint(axes: Axes) -> None:
        axes.plot((0, 1), (0, 1), color=INK, alpha=0.4, linestyle="--", linewidth=1)
        for one in curves:
            name, bins = one["method"], one["bins"]
            most = max(bin["n"] for bin in bins)
            x, y = [bin["predicted"] for bin in bins], [bin["observed"] for bin in bins]
            axes.plot(x, y, color=styles.colour(name), linewidth=1)
            sizes = [15 + 65 * bin["n"] / most for bin in bins]
            label = f"{shortened(name)} (ECE {one['ece']:.3f})"
            axes.scatter(x, y, s=sizes, marker=styles.marker(name), color=styles.colour(name), label=label)
        axes.set(xlabel="predicted share of wrong answers", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))

    return Picture(
        "Calibration",
        "Gate scores as probabilities that the closed-book answer is wrong (isotonic regression, fitted on the other "
        "folds) against how often it was. Dots on the line are right; large dots hold many questions.",
        draw(
            f"{section}-calibration",
            "Reliability of " + ", ".join(f"{one['method']}: calibration error {share(one['ece'])}" for one in curves),
            paint,
            len(curves),
        ),
        ("method", "predicted", "observed", "questions"),
        [
            [one["method"], share(bin["predicted"]), share(bin["observed"]), str(bin["n"])]
            for one in curves
            for bin in one["bins"]
        ],
    )


# --- answers ---------------------------------------------------------------------------------------------------------


def risk(section: str, document: Document) -> Picture | None:
    """The share of wrong answers as ever more of the most certain are accepted, for methods that give an uncertainty."""
    curves = document["selective"]
    if not curves:
        return None
    styles = Styles(document)

    def paint(axes: Axes) -> None:
        for one in curves:
            line = thinned(one["curve"])
            x, y = [point["coverage"] for point in line], [point["risk"] for point in line]
            # From the first step on: before it, nothing can be accepted.
            axes.step(x, y, where="post", color=styles.colour(one["method"]), lw=1.6, label=shortened(one["method"]))
            axes.plot(x[:1], y[:1], styles.marker(one["method"]), color=styles.colour(one["method"]), ms=4)
        highest = max(point["risk"] for one in curves for point in one["curve"])
        axes.set(xlabel="share of answers given, most certain first", ylabel="share of them wrong", xlim=(0, 1.01))
        axes.set_ylim(0, min(1.01, highest * 1.1 + 0.02))
        axes.grid(color=INK, alpha=0.12)

    rows = [[one["method"], *(share(at["risk"]) for at in one["at"]), share(one["risk"]), share(one["aurc"])] for one in curves]
    return Picture(
        "Risk against coverage",
        "Were only the most certain answers given, how many of them would be wrong? Exact match; lower is better.",
        draw(
            f"{section}-risk",
            "Risk against coverage. "
            + "; ".join(f"{row[0]}: {row[-2]} wrong when all are given, area {row[-1]}" for row in rows),
            paint,
            len(curves),
            3,
        ),
        ("method", *(f"{at['wanted']:.0%} given" for at in curves[0]["at"]), "all given", "area (AURC)"),
        rows,
    )


# --- cost ------------------------------------------------------------------------------------------------------------


def quality(section: str, document: Document) -> Picture | None:
    """Exact match against mean searches per question, with intervals."""
    return _cost_picture(
        section,
        document,
        "quality",
        "Quality against searches",
        "searches per question",
        {method["method"]: (method["retrievals"], method["intervals"]["retrievals"]) for method in document["methods"]},
    )


def spending(section: str, document: Document) -> Picture | None:
    """Exact match against what a thousand questions cost; against tokens where there are no prices."""
    if document["prices"] is None:
        values = {one["method"]: (one["tokens"], None) for one in document["costs"]}
        return _cost_picture(section, document, "cost", "Quality against tokens", "tokens per question", values)
    money = {one["method"]: (one["money"]["per_thousand"], one["money"]["interval"]) for one in document["costs"]}
    axis = " ".join(
        ("cost of 1,000 questions", f"({document['prices']['currency']})" if document["prices"]["currency"] else "")
    )
    return _cost_picture(section, document, "cost", "Quality against cost", axis.strip(), money)


def _cost_picture(
    section: str,
    document: Document,
    name: str,
    title: str,
    axis: str,
    costs: Mapping[str, tuple[Any, Sequence[float] | None]],
) -> Picture | None:
    shown = [method for method in document["methods"] if method["em"] is not None and costs[method["method"]][0] is not None]
    if not shown:
        return None
    styles = Styles(document)

    def paint(axes: Axes) -> None:
        for method in shown:
            x, spread = costs[method["method"]]
            y, colour = method["em"], styles.colour(method["method"])
            if method["intervals"]["em"]:
                axes.plot((x, x), method["intervals"]["em"], color=colour, lw=1)
            if spread:
                axes.plot(spread, (y, y), color=colour, lw=1)
            axes.plot([x], [y], styles.marker(method["method"]), color=colour, label=shortened(method["method"]), ms=7)
        axes.set(xlabel=axis, ylabel="exact match")
        axes.set_xlim(left=min(-0.02 * axes.get_xlim()[1], 0))
        axes.grid(color=INK, alpha=0.12)

    rows = [
        [method["method"], number(costs[method["method"]][0]), share(method["em"]), interval(method["intervals"]["em"])]
        for method in shown
    ]
    return Picture(
        title,
        "Further up is better, further left cheaper. Lines: 95 % intervals.",
        draw(
            f"{section}-{name}",
            f"Exact match against {axis}. " + "; ".join(f"{row[0]}: {row[2]} at {row[1]}" for row in rows),
            paint,
            len(shown),
            3,
            HEIGHT,
        ),
        ("method", axis, "exact match", "95 % interval"),
        rows,
    )
