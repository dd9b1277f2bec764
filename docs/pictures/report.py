"""The picture of the report: ``python docs/pictures/report.py RUN...`` writes ``report.png`` beside this file.

The one that is there is of ``gnothi eval lab --method direct,cot,rag,ircot,flare,dragin,seakr --out RUN``. It needs Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

WINDOW = "1180,1360"


def main(runs: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        subprocess.run([sys.executable, "-m", "gnothi", "report", *runs, "--html", str(page)], check=True)
        picture = Path(__file__).parent / "report.png"
        shot = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--window-size={WINDOW}",
            f"--screenshot={picture}",
        ]
        subprocess.run([*shot, page.as_uri()], check=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
