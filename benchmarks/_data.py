"""Where real data lie: a folder beside the project, never part of it. Benchmarks and tests look for it here alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def find_data() -> Path | None:
    """``$GNOTHI_SHARED/data``, or ``shared/data`` in a parent folder of the project; None where there is none."""
    given = os.environ.get("GNOTHI_SHARED")
    folders = [Path(given)] if given else [parent / "shared" for parent in Path(__file__).resolve().parents]
    return next((folder / "data" for folder in folders if (folder / "data").is_dir()), None)


def data_folder(instead: str = "give --data FOLDER") -> Path:
    """The folder, or the end of the program with what to do ``instead``. Asked for after arguments were checked."""
    folder = find_data()
    if folder is None:
        sys.exit(f"no shared/data in the parents of the project: {instead}, or set GNOTHI_SHARED to what holds data/")
    return folder
