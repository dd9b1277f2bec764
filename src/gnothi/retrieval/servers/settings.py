"""How an index on servers is described: an address, or a TOML file with what differs from the usual."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gnothi import config
from gnothi.config import Given
from gnothi.errors import InvalidInput, InvalidSetting

T = TypeVar("T")
SERVERS = "servers"
FILE = ".toml"


def described(kind: type[T], argument: str, scheme: str) -> list[T]:
    """One for each server. ``argument`` is ADDRESS or ADDRESS#TABLE (settings ``server`` and ``table``), or the name of a TOML
    file: its keys are settings of all servers, those under ``[[servers]]`` of one.

    Raises InvalidInput for a file that cannot be read, UnknownName and InvalidSetting for settings."""
    what = f"index {scheme}:{argument}"
    if not argument.strip("/ "):
        raise InvalidSetting(f"<--index {scheme}:...>: got no address, expected {scheme}:ADDRESS or {scheme}:FILE.toml.")
    if not argument.endswith(FILE):
        server, _, table = argument.partition("#")
        return [_built(kind, {"server": server} | ({"table": table} if table else {}), what, argument)]
    path = Path(argument).expanduser()
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}, which describes an index: {error.strerror}. Check its name.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}, which describes an index, is not valid TOML: {error}.") from None
    several = read.pop(SERVERS, [{}])
    if not isinstance(several, list) or not several or not all(isinstance(one, dict) for one in several):
        raise InvalidInput(f"{path}: got {SERVERS} = {several!r:.60}, expected tables under [[{SERVERS}]].")
    return [_built(kind, {**read, **one}, what, str(path)) for one in several]


def _built(kind: type[T], values: Mapping[str, Any], what: str, source: str) -> T:
    if not values.get("server"):
        raise InvalidSetting(f'{what}: got no server, expected its address, as in server = "..." in the file.')
    return config.build(kind, {key: Given(value, source, 1) for key, value in values.items()}, what)
