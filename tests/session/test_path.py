"""How far a reader has to go to follow a request through its resolution.

The path is walked by running ``resolve`` with everything imported and every class read once, and listing the functions of this
project in the order in which each is first entered. Not counted: lambdas, comprehensions, and names like ``__init__``.

A *stay* is a run of neighbours on this list that stand in one module: the reader opens the file, reads, and goes on elsewhere.
A *climb* is a step from a stay to one in a higher layer, of those that pyproject.toml lists: the reader has to go back to who
called. What a calibration adds are the functions that are entered with one and not where such settings are typed; what only
refuses it, for another model or other settings, is left out (``ignore_mismatch``).
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType

import gnothi
from gnothi.calibration.file import read
from gnothi.config import Settings, read_settings
from gnothi.models import LAB
from gnothi.session.plan import Request, resolve

SOURCE = Path(gnothi.__file__).parent
SAMPLE = read(Path(__file__).parent.parent / "samples" / "calibration.toml")


def path_of(request: Request) -> list[tuple[str, str]]:
    """Module and name of every function, in the order in which they are entered for the first time."""
    seen: dict[tuple[str, str], None] = {}

    def enter(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith(("<", "__")):
            seen.setdefault((Path(code.co_filename).relative_to(SOURCE).with_suffix("").as_posix(), code.co_qualname))

    resolve(request)
    sys.setprofile(enter)
    try:
        resolve(request)
    finally:
        sys.setprofile(None)
    return list(seen)


def layer(module: str) -> int:
    """The height of its package, from the bottom."""
    contracts = tomllib.loads((SOURCE.parent.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    rows: list[str] = contracts[0]["layers"]
    return next(place for place, row in enumerate(reversed(rows)) if f"gnothi.{module.split('/')[0]}" in row.split())


def test_a_request_is_followed_in_few_steps() -> None:
    path = path_of(Request(["rag"], settings=read_settings(overrides=["k=5"])))
    stays = [module for module, _ in groupby(module for module, _ in path)]
    climbs = [(one, other) for one, other in pairwise(stays) if layer(other) > layer(one)]
    assert len(stays) <= 20, stays
    assert len(climbs) <= 4, climbs
    assert len(path) <= 40, path


def test_a_calibration_reaches_its_gate_in_few_steps() -> None:
    typed = Request(
        ["seakr"],
        LAB,
        settings=read_settings(overrides=["threshold=-3", "reason=auto", "signal.samples=20", "signal.site=ffn"]),
    )
    known, read = path_of(typed), replace(typed, settings=Settings(), calibration=SAMPLE, ignore_mismatch=True)
    added = [one for one in path_of(read) if one not in known]
    assert len(added) <= 12, added
