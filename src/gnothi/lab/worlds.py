"""The laboratory's worlds by what users call them, and the world that a model was trained in.

Nothing names the built-in world; a number the world of that seed; a lab model's folder the world it was trained in; a TOML
file one of other shares: ``seed = 1`` and a table ``[grid]``.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from gnothi.errors import GnothiError, InvalidInput, UnknownName, shown
from gnothi.files import home_expanded
from gnothi.lab.world import Grid, World, build_world
from gnothi.weights import DECLARATION

KEY = "world"
"""What ``gnothi.json`` calls it."""
_SEED = re.compile(r"\d{1,9}")
_EXPECTED = 'a whole number `seed` and a table `grid` of shares ({"seed": 1, "grid": {"often": 0.6, ...}})'


@lru_cache(maxsize=8)
def built(seed: int, grid: Grid) -> World:
    return build_world(seed, grid)


def find(argument: str) -> World:
    """The world of that name. Raises UnknownName where there is none, InvalidInput or InvalidSetting for a file or folder that
    does not say one."""
    if not argument or _SEED.fullmatch(argument):
        return built(int(argument or 0), Grid())
    path = home_expanded(argument)
    if path.is_dir():
        if (world := of_folder(path)) is None:
            raise InvalidInput(
                f"{path}: got a folder without the model of a laboratory's world, expected one of `gnothi lab train`."
            )
        return world
    if path.is_file():
        try:
            table = tomllib.loads(path.read_text("utf-8"))
        except (ValueError, OSError, RecursionError) as error:
            raise InvalidInput(f"{path} is not valid TOML: {error}. Expected {_EXPECTED}.") from None
        return _from_table(table, path)
    raise UnknownName("world of the laboratory", argument, ["a seed", "a lab model's folder", "a TOML file"])


def name_of(world: World, otherwise: str) -> str:
    """What ``find`` knows it by: ``otherwise`` where a seed does not tell it."""
    if world.grid != Grid():
        return otherwise
    return str(world.seed) if world.seed else ""


def declaration(world: World) -> dict[str, Any]:
    """What a model's ``gnothi.json`` says of its world."""
    return {"seed": world.seed, "grid": asdict(world.grid), "facts": world.fingerprint}


def of_folder(folder: str | Path) -> World | None:
    """The world that the model in this folder was trained in; None for any other model. Raises InvalidInput for one that cannot
    be read, or that another version of the laboratory made otherwise."""
    path = Path(os.path.expanduser(folder), DECLARATION)
    try:
        document = json.loads(path.read_text("utf-8")) if path.is_file() else None
    except (ValueError, OSError, RecursionError):
        return None  # told by whoever loads the model
    table = document.get(KEY) if isinstance(document, dict) else None
    if table is None:
        return None
    world = _from_table(table, path)
    if table.get("facts", world.fingerprint) != world.fingerprint:
        raise InvalidInput(
            f"{path}: the model learnt other facts (fingerprint {table['facts']!r:.40}) than this version of Gnothi makes from "
            f"the same seed ({world.fingerprint}). Train it again: `gnothi lab train`."
        )
    return world


def _from_table(table: Any, path: Path) -> World:
    seed, shares = (table.get("seed"), table.get("grid", {})) if isinstance(table, Mapping) else (None, {})
    known = {field.name for field in fields(Grid)}
    numbers = isinstance(shares, Mapping) and all(
        key in known and isinstance(value, int | float) and not isinstance(value, bool) for key, value in shares.items()
    )
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 10**9 or not numbers:
        raise InvalidInput(f"{path}: got {shown(table)}, expected {_EXPECTED}; the shares are {', '.join(sorted(known))}.")
    try:
        return built(seed, Grid(**{key: float(value) for key, value in shares.items()}))
    except GnothiError as error:
        raise InvalidInput(f"{path}: {error.message}") from None
