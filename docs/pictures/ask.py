"""The picture of ``gnothi ask`` in the README: ``python docs/pictures/ask.py`` asks and writes ``ask.svg`` beside this file."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

QUESTION = "What is the birthplace of the star of The Hollow Letter?"
WIDTH = 80


STYLES = {
    r"^\$ .*": "bold",
    r"(?m)^ +\d+ draft": "bold cyan",
    r"(?m)^ +(gate|search|found|read|write|answers|because|evidence|cost)\b": "cyan",
    r"sure, trust memory": "green",
    r"unsure, retrieve": "bold yellow",
    r"(?m)^ +(read|answers) +\*.*$": "green",
    r"(?m)^[A-Z]\w+$": "bold green",
}


def main() -> None:
    command = [sys.executable, "-m", "gnothi", "ask", QUESTION]
    environment = os.environ | {"COLUMNS": str(WIDTH)}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    printed = re.sub(r"(model calls), [\d.]+ m?s$", r"\1", printed.rstrip(), flags=re.MULTILINE)  # the time is the machine's
    text = Text(f'$ gnothi ask "{QUESTION}"\n{printed}')
    for pattern, style in STYLES.items():
        text.highlight_regex(pattern, style)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(text)
    # The font is the reader's own: rich's format would fetch one from the net.
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="gnothi ask", code_format=form)
    (Path(__file__).parent / "ask.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
