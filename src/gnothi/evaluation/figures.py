"""The report's pictures as SVG to be put inside a page: text stays text, colours are the page's, nothing is loaded.

Series are drawn in stand-in colours that become CSS variables (``--series-1`` ...), axes and text in ``currentColor``, so
that one drawing serves light, dark and paper.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from gnothi.errors import MissingDependency
from gnothi.evaluation.gate import Truth, paired_scores
from gnothi.evaluation.rows import Row
from gnothi.evaluation.statistics import crossfit_probabilities, reliability, risk_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"
SERIES = tuple(f"#0000{number:02x}" for number in range(0xA1, 0xA9))
"""Stand-ins for ``--series-1`` to ``--series-8``."""
MARKERS = "osD^vPX*"
_SIZE = (4.8, 3.3)  # inches; small, so that letters stay readable where a phone shrinks the drawing

ByMethod = Mapping[str, Sequence[Row]]


def draw(name: str, label: str, paint: Callable[[Axes], None]) -> str:
    """An ``<svg>`` element with what ``paint`` puts on the axes. ``name`` keeps its ids apart from other drawings' in the page,
    ``label`` says to those who cannot see it what it shows."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", "the HTML report") from error

    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=_SIZE, layout="constrained")
        paint(figure.subplots())
        content = io.StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _for_page(content.getvalue(), name, label)


def _for_page(svg: str, name: str, label: str) -> str:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    view = re.search(r'viewBox="[^"]*"', body)
    assert view is not None
    opening = f'<svg role="img" aria-label="{_attribute(label)}" {view.group()}>'
    body = opening + body[body.index(">") + 1 :]
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body).replace("url(#", f"url(#{name}-")
    # The page's fonts are to win; a style element would reach beyond the drawing.
    body = re.sub(r" ?font-family: [^;\"]*;?", "", re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL))
    body = body.replace(INK, "currentColor")
    for number, colour in enumerate(SERIES, start=1):
        body = body.replace(colour, f"var(--series-{number})")
    return body.strip()


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


# --- the pictures --------------------------------------------------------------------------------------------------


def quality(section: str, methods: Sequence[Mapping[str, Any]]) -> str | None:
    """Exact match against mean searches per question, with intervals; the oracle where the run holds never and always."""
    shown = [method for method in methods if method["em"] is not None]
    if not shown:
        return None

    def paint(axes: Axes) -> None:
        for method, colour, marker in zip(shown, cycle(SERIES), cycle(MARKERS), strict=False):
            x, y = method["retrievals"], method["em"]
            for interval, horizontal in ((method["intervals"]["em"], False), (method["intervals"]["retrievals"], True)):
                if interval:
                    axes.plot(interval if horizontal else (x, x), (y, y) if horizontal else interval, color=colour, linewidth=1)
            axes.plot([x], [y], marker, color=colour, label=method["method"], markersize=7)
        if oracle := _oracle(shown):
            axes.plot(
                *oracle, "_", color=INK, markersize=14, markeredgewidth=2, label="oracle (the better of never and always)"
            )
        axes.set(xlabel="searches per question", ylabel="exact match")
        axes.set_xlim(left=min(-0.05, axes.get_xlim()[0]))
        axes.grid(color=INK, alpha=0.12)
        axes.legend(fontsize=8)

    text = "; ".join(f"{method['method']}: {method['em']:.3f} at {method['retrievals']:.2f} searches" for method in shown)
    return draw(f"{section}-quality", f"Exact match against searches per question. {text}", paint)


def _oracle(methods: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Searches per question (one where always is the better) and exact match."""
    for method in methods:
        beside = method["beside"]
        if beside and beside["em"].get("oracle") is not None:
            return beside["retrieval_rate"]["oracle"], beside["em"]["oracle"]
    return None


def distributions(section: str, name: str, rows: Sequence[Row], known: Truth, gate: Mapping[str, Any]) -> str | None:
    """The gate's first scores where the closed-book answer was right and where it was wrong, with the thresholds."""
    scores, wrong = paired_scores(rows, known)
    finite = [(score, is_wrong) for score, is_wrong in zip(scores, wrong, strict=True) if np.isfinite(score)]
    if not finite or gate["auroc"] is None:
        return None
    values = np.array([score for score, _ in finite])
    edges: list[float] = np.histogram_bin_edges(values, bins=min(30, max(5, int(np.sqrt(len(values)) * 1.5)))).tolist()

    def paint(axes: Axes) -> None:
        for is_wrong, colour, label in ((False, SERIES[0], "right"), (True, SERIES[1], "wrong")):
            chosen = [score for score, flag in finite if flag == is_wrong]
            axes.hist(chosen, edges, color=colour, alpha=0.55, label=f"{_asked(known)} {label} ({len(chosen)})")
        for threshold in gate["thresholds"]:
            axes.axvline(threshold, color=INK, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
        axes.set(xlabel=f"{gate['signal']} (higher: less certain)", ylabel="questions")
        axes.legend(fontsize=8)

    beyond = len(scores) - len(finite)
    text = f"{name}: highest scores of retrieval decisions, AUROC {gate['auroc']:.3f}" + (
        f"; {beyond} infinite" if beyond else ""
    )
    return draw(f"{section}-distribution-{_identifier(name)}", text, paint)


def _asked(known: Truth) -> str:
    return "familiarity says" if known.source == "familiarity" else f"{known.source} was"


def risk(section: str, by_method: ByMethod) -> str | None:
    """The share of wrong answers as ever more of the most certain are accepted, for methods that give an uncertainty."""
    curves = {}
    for name, rows in by_method.items():
        usable = [(row.uncertainty, row.metrics["em"] < 1) for row in rows if row.uncertainty is not None and row.metrics]
        if len(usable) > 1:
            curves[name] = (risk_coverage([u for u, _ in usable], [w for _, w in usable]), len(usable))
    if not curves:
        return None

    def paint(axes: Axes) -> None:
        for (name, ((coverage, wrong), _)), colour in zip(curves.items(), cycle(SERIES), strict=False):
            axes.step(coverage, wrong, where="post", color=colour, label=name, linewidth=1.6)
        axes.set(
            xlabel="share of answers accepted, most certain first", ylabel="share of them wrong", xlim=(0, 1.01), ylim=(0, 1.01)
        )
        axes.grid(color=INK, alpha=0.12)
        axes.legend(fontsize=8)

    text = "; ".join(f"{name}: {wrong[-1]:.3f} wrong of {n} when all are accepted" for name, ((_, wrong), n) in curves.items())
    return draw(f"{section}-risk", f"Risk against coverage. {text}", paint)


def calibration(section: str, by_method: ByMethod, known: Truth) -> str | None:
    """How often the closed-book answer was wrong against the probability that the gate's score gives it (cross-fitted)."""
    curves = {}
    for name, rows in by_method.items():
        scores, wrong = paired_scores(rows, known)
        predicted = crossfit_probabilities(scores, wrong)
        if predicted is not None:
            curves[name] = reliability(predicted, wrong)
    if not curves:
        return None

    def paint(axes: Axes) -> None:
        axes.plot((0, 1), (0, 1), color=INK, alpha=0.4, linestyle="--", linewidth=1)
        for (name, bins), colour, marker in zip(curves.items(), cycle(SERIES), cycle(MARKERS), strict=False):
            most = max(bin.n for bin in bins)
            axes.plot([bin.predicted for bin in bins], [bin.observed for bin in bins], color=colour, linewidth=1, label=name)
            sizes = [15 + 65 * bin.n / most for bin in bins]
            axes.scatter([bin.predicted for bin in bins], [bin.observed for bin in bins], s=sizes, marker=marker, color=colour)
        axes.set(xlabel="predicted share of wrong answers", ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.legend(fontsize=8)

    return draw(
        f"{section}-calibration",
        f"Reliability of {', '.join(curves)}: predicted against observed share of wrong answers",
        paint,
    )


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name)
