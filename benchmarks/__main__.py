"""Benchmarks by name, each a program of its own.

python -m benchmarks             lists them
python -m benchmarks NAME ...    runs these (as `python -m benchmarks.NAME` does); options go to the last one
python -m benchmarks all         runs every one
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def available() -> dict[str, str]:
    """Name → the first line of what the file says of itself."""
    files = sorted(path for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
    return {path.stem: (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0] for path in files}


def main(names: list[str]) -> int:
    known = available()
    if not names:
        sys.stdout.write("".join(f"{name:<16} {summary}\n" for name, summary in known.items()))
        return 0
    begins = next((place for place, name in enumerate(names) if name.startswith("-")), len(names))
    names, options = names[:begins], names[begins:]
    chosen = list(known) if names == ["all"] else names
    if unknown := [name for name in chosen if name not in known]:
        sys.stderr.write(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known) or '(none)'}\n")
        return 2
    runs = [[f"benchmarks.{name}", *(options if place == len(chosen) else ())] for place, name in enumerate(chosen, start=1)]
    return max(subprocess.run([sys.executable, "-m", *run], check=False).returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
