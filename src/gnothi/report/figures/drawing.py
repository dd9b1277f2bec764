"""Pictures as SVG to be put inside a page: text stays text, colours are the page's, nothing is loaded.

Series are drawn in stand-in colours that become CSS variables (``--series-1`` ...), axes and text in ``currentColor``, so
that one drawing serves light, dark and paper.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gnothi.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"
SERIES = tuple(f"#0000{number:02x}" for number in range(0xA1, 0xA9))
"""Stand-ins for ``--series-1`` to ``--series-8``."""
MARKERS = "osD^vPX*"
WIDTH, HEIGHT = 4.8, 3.3  # inches; small, so that letters stay readable where a phone shrinks the drawing
_ROW = 0.2  # inches that a line of the legend takes


class Picture(NamedTuple):
    """``svg`` is an element for the page; ``head`` and ``rows`` say the same in numbers."""

    title: str
    caption: str
    svg: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]


def drawn(*pictures: Picture | None) -> list[Picture]:
    return [picture for picture in pictures if picture is not None]


def draw(
    name: str, label: str, paint: Callable[[Axes], None], legend: int = 0, columns: int = 2, height: float = HEIGHT
) -> str:
    """An ``<svg>`` element with what ``paint`` puts on the axes. ``name`` keeps its ids apart from other drawings' in the page,
    ``label`` says to those who cannot see it what it shows. A legend of that many entries stands below the axes."""
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
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    }
    lines = -(-legend // columns)
    with mpl.rc_context(style):
        figure = Figure(figsize=(WIDTH, height + _ROW * lines), layout="constrained")
        paint(figure.subplots())
        if legend:
            figure.legend(loc="outside lower center", ncols=columns, fontsize=9, handlelength=1.6, columnspacing=1)
        content = io.StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _for_page(content.getvalue(), name, label)


def identifier(name: str) -> str:
    """``name`` as part of an id."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name)


def shortened(name: str, characters: int = 30) -> str:
    """``name`` as it fits a legend."""
    return name if len(name) <= characters else name[: characters - 1] + "…"


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
