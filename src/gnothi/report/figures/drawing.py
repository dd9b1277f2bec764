"""Pictures, as files and as SVG inside a page.

Inside a page text stays text, and nothing is loaded. Series are drawn in stand-in colours that become CSS variables
(``--series-1`` ...), axes and text in ``currentColor``, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gnothi.errors import InvalidSetting, MissingDependency

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T")
INK = "#010203"
ON = "#010204"
"""Ink on the colours of series, which are bright enough for black in light and in dark."""
SERIES = tuple(f"#0000{number:02x}" for number in range(0xA1, 0xA9))
"""Stand-ins for ``--series-1`` to ``--series-8``."""
COLOURS = ("#4477aa", "#bb5566", "#228833", "#ccaa33", "#66ccee", "#aa3377")
"""Of pictures in files, which stand on white."""
LINES = ("-", "--", "-.")
MARKERS = "osD^vPX*"
WIDTH, HEIGHT = 4.8, 3.3  # inches; small, so that letters stay readable where a phone shrinks the drawing
POINTS = 300
"""Points of a line that are drawn on a page; CSV and JSON have all of them."""
_ROW = 0.2  # inches that a line of the legend takes


class Picture(NamedTuple):
    """``svg`` is an element for the page; ``head`` and ``rows`` say the same in numbers."""

    title: str
    caption: str
    svg: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]


class Styles:
    """A colour, a marker and dashes for each name, the same in all pictures of a section."""

    def __init__(self, names: Iterable[str], colours: Sequence[str] = SERIES) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._colours = colours

    def __len__(self) -> int:
        return len(self._places)

    def colour(self, name: str) -> str:
        return self._colours[self._places.get(name, 0) % len(self._colours)]

    def marker(self, name: str) -> str:
        return MARKERS[(self._places.get(name, 0) + self._turn(name)) % len(MARKERS)]

    def dashes(self, name: str) -> str:
        return LINES[self._turn(name) % len(LINES)]

    def _turn(self, name: str) -> int:
        """How often all colours were used before."""
        return self._places.get(name, 0) // len(self._colours)


def draw(
    name: str, label: str, paint: Callable[[Axes], None], legend: int = 0, columns: int = 2, height: float = HEIGHT
) -> str:
    """An ``<svg>`` element with what ``paint`` puts on the axes. ``name`` keeps its ids apart from other drawings' in the page,
    ``label`` says to those who cannot see it what it shows. A legend of that many entries stands below the axes."""
    more: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 10,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    }
    lines = -(-legend // columns)
    with style("the HTML report", more):
        figure = new_figure(WIDTH, height + _ROW * lines)
        paint(figure.subplots())
        if legend:
            figure.legend(loc="outside lower center", ncols=columns, fontsize=9, handlelength=1.6, columnspacing=1)
        content = io.StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _for_page(content.getvalue(), name, label)


def style(purpose: str, more: Mapping[Any, Any] | None = None) -> AbstractContextManager[None]:
    """How pictures look: nothing that needs no ink, no formulas in names. Raises MissingDependency, naming the ``purpose``."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingDependency("matplotlib", "report", purpose) from error
    plain: dict[Any, Any] = dict.fromkeys(("text.parse_math", "axes.spines.top", "axes.spines.right", "legend.frameon"), False)
    return mpl.rc_context({**plain, **(more or {})})


def new_figure(width: float, height: float) -> Figure:
    """An empty one, sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture, the same bytes for the same figure. Raises InvalidSetting for an ending it cannot write."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise InvalidSetting(f"got the picture {path}, expected a name that ends in .png, .svg or .pdf.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure.savefig(temporary, format=kind, metadata=metadata)
    temporary.replace(path)


def thinned(line: Sequence[T]) -> Sequence[T]:
    """The first and last point and evenly many between them."""
    if len(line) <= POINTS:
        return line
    return [line[place * (len(line) - 1) // (POINTS - 1)] for place in range(POINTS)]


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
    body = body.replace(INK, "currentColor").replace(ON, "#000")
    for number, colour in enumerate(SERIES, start=1):
        body = body.replace(colour, f"var(--series-{number})")
    return body.strip()


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
