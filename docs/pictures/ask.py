"""The picture of ``gnothi ask`` in the README: ``python docs/pictures/ask.py`` asks and writes ``ask.svg`` beside this file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

QUESTION = "What is the birthplace of the star of The Hollow Letter?"
WIDTH = 84


def main() -> None:
    environment = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "gnothi", "ask", QUESTION]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)
    console.print(Text.from_markup(f'[bold]$ gnothi ask "{QUESTION}"[/bold]'))
    console.print(Text.from_ansi(printed.rstrip()))
    # The font is the reader's own: rich's format would fetch one from the net.
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="gnothi ask", code_format=form)
    (Path(__file__).parent / "ask.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
