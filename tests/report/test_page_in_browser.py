"""The page in headless Chromium: on narrow screens, in the dark, on paper; what it asks of the network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unicodedata
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from gnothi.calibration import compare as gates
from gnothi.report.page.replays import write_page
from gnothi.report.page.runs import write_report
from gnothi.report.sections import load_runs
from tests.report.rows import row
from tests.report.test_page import full, make_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync""".split()
WIDTHS = (320, 360, 414, 820)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian's package chromium)"),
]

PROBE = """
if (UNFOLD) for (const item of document.querySelectorAll("details")) item.open = true;
const linear = part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
const luminance = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(part => linear(part / 255));
  return .2126 * r + .7152 * g + .0722 * b;
};
const contrast = (one, other) => (Math.max(one, other) + .05) / (Math.min(one, other) + .05);
const probe = document.body.appendChild(document.createElement("i"));
const colour = name => { probe.style.color = `var(--${name})`; return luminance(getComputedStyle(probe).color); };
const table = document.querySelector("table[data-table=methods]"), wide = table.parentElement;
wide.scrollLeft = 1000;
const found = {
  width: innerWidth,
  needs: document.documentElement.scrollWidth,
  scrolled: wide.scrollLeft,
  name: table.querySelector("tbody th").getBoundingClientRect().left - wide.getBoundingClientRect().left,
  broken: [...document.querySelectorAll("thead th")].filter(cell => cell.offsetWidth && !/[\\s-]/.test(cell.textContent)
    && cell.textContent.length < 12 && cell.getClientRects().length && (() => { const range = document.createRange();
      range.selectNodeContents(cell); return range.getClientRects().length > 1; })()).map(cell => cell.textContent),
  contrasts: Object.fromEntries("ink soft accent warn good bad".split(" ").flatMap(
    name => ["paper", "fill"].map(under => [`${name} on ${under}`, contrast(colour(name), colour(under))]))),
  loaded: performance.getEntriesByType("resource").map(entry => entry.name),
};
parent.document.querySelector("pre").append(JSON.stringify(found) + "\\n");
"""


def run(folder: Path, *arguments: str, **given: Any) -> str:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, **given)
    return str(done.stdout)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    longest = "a method of a name so long that it is hard to put anywhere"
    other = make_run(folder / "another-run-with-a-name-of-some-length", [row(longest, n, right=n % 2 == 0) for n in range(60)])
    write_report(load_runs([full(folder / "run"), other]), folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def looked(page: Path) -> dict[str, dict[str, Any]]:
    """What a script in the page finds, by colour scheme and width, in frames of these widths (a window cannot be as narrow)."""
    found = {}
    html = page.read_text(encoding="utf-8")
    frames = "".join(
        f'<iframe style="width: {width}px; height: 800px; border: 0" srcdoc="{escape(probed)}"></iframe>'
        for unfold in ("false", "true")
        for probed in [html.replace("</body>", f"<script>const UNFOLD = {unfold};{PROBE}</script></body>")]
        for width in WIDTHS
    )
    outer = page.with_name("outer.html")
    outer.write_text(f"<!doctype html><meta charset=utf-8><pre></pre>{frames}", encoding="utf-8")
    for scheme, flags in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
        shown = re.search(r"<pre>(.*?)</pre>", run(page.parent, *flags, "--dump-dom", outer.as_uri()), re.DOTALL)
        assert shown is not None
        lines = [json.loads(line) for line in unescape(shown.group(1)).splitlines()]
        assert len(lines) == 2 * len(WIDTHS)
        for number, line in enumerate(lines):
            found[f"{scheme} {line['width']} {number}"] = line
    return found


def test_nothing_is_wider_than_the_screen(looked: dict[str, dict[str, Any]]) -> None:
    assert {one["width"] for one in looked.values()} == set(WIDTHS)
    assert {name: one["needs"] for name, one in looked.items() if one["needs"] > one["width"]} == {}


def test_names_of_rows_stay_while_a_table_is_scrolled(looked: dict[str, dict[str, Any]]) -> None:
    narrow = [one for one in looked.values() if one["width"] < 500]
    assert all(one["scrolled"] > 100 for one in narrow)
    assert all(one["name"] == pytest.approx(0, abs=1) for one in narrow)


def test_headings_of_columns_are_not_broken_within_words(looked: dict[str, dict[str, Any]]) -> None:
    assert {name: one["broken"] for name, one in looked.items() if one["broken"]} == {}


def test_text_can_be_read_in_both_schemes(looked: dict[str, dict[str, Any]]) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 : 1 at least."""
    schemes = {name.split()[0]: one["contrasts"] for name, one in looked.items()}
    assert schemes["light"] != schemes["dark"]
    low = {f"{scheme}: {pair}": value for scheme, pairs in schemes.items() for pair, value in pairs.items() if value < 4.5}
    assert low == {}


WIDTH = """
if (UNFOLD) for (const item of document.querySelectorAll("details")) item.open = true;
const inside = item => item.closest(".wide") && !item.matches(".wide");
const out = [...document.querySelectorAll("body *")].filter(
  item => item.getBoundingClientRect().right > innerWidth + 1 && !inside(item));
const found = {width: innerWidth, needs: document.documentElement.scrollWidth,
  out: [...new Set(out.map(item => `${item.tagName}: ${item.textContent.trim().slice(0, 60)}`))]};
parent.document.querySelector("pre").append(JSON.stringify(found) + "\\n");
"""


def test_no_page_of_gates_is_wider_than_the_screen(tmp_path: Path) -> None:
    folder = tmp_path / "a_folder_with_a_name_of_more_than_forty_characters_without_a_gap"
    runs = [full(folder / name) for name in ("a_run_with_a_name_of_more_than_forty_characters_without_a_gap", "other")]
    replays = [gates.read(run) for run in runs]
    write_page(replays, [gates.document(replay, thresholds={"gram": 0.5}) for replay in replays], tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    frames = "".join(
        f'<iframe style="width: {width}px; height: 800px; border: 0" srcdoc="{escape(probed)}"></iframe>'
        for unfold in ("false", "true")
        for probed in [html.replace("</body>", f"<script>const UNFOLD = {unfold};{WIDTH}</script></body>")]
        for width in (*WIDTHS, 375)
    )
    (tmp_path / "outer.html").write_text(f"<!doctype html><meta charset=utf-8><pre></pre>{frames}", encoding="utf-8")
    shown = re.search(r"<pre>(.*?)</pre>", run(tmp_path, "--dump-dom", (tmp_path / "outer.html").as_uri()), re.DOTALL)
    assert shown is not None
    lines = [json.loads(line) for line in unescape(shown.group(1)).splitlines()]
    assert len(lines) == 2 * (len(WIDTHS) + 1)
    assert [line for line in lines if line["needs"] > line["width"] or line["out"]] == []


def test_nothing_is_loaded(looked: dict[str, dict[str, Any]]) -> None:
    assert [one["loaded"] for one in looked.values() if one["loaded"]] == []


def test_on_paper(page: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="needs the extra documents")
    html = page.read_text(encoding="utf-8").replace('<details class="question', '<details open class="question', 1)
    opened = page.with_name("opened.html")
    opened.write_text(html, encoding="utf-8")
    made = page.with_name("page.pdf")
    for flags in ((), ("--blink-settings=preferredColorScheme=0",)):
        run(page.parent, *flags, "--no-pdf-header-footer", f"--print-to-pdf={made}", opened.as_uri())
        pages = pypdf.PdfReader(made).pages
        written = unicodedata.normalize("NFKC", " ".join(one.extract_text() for one in pages))  # letters drawn as one
        text = " ".join(written.split())
        for heading in re.findall(r"<h3>(.*?)</h3>", html):
            assert unescape(heading) in text, heading
        # The last column of the widest table, what is folded away on the screen, and the one question that was open.
        for said in ("seconds", "f1", "dataset.fingerprint", "RuntimeError: broken", "Printed: only the questions"):
            assert said in text, said
        assert "Find in questions" not in text
        assert text.count("✓ right") + text.count("✗ wrong") < 10
        assert len(pages) < 15
