"""How an index on servers is described: an address, or a TOML file with what differs from the usual."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from gnothi import config
from gnothi.config import Given
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.files import TOML_ERRORS, home_expanded

T = TypeVar("T")
SERVERS = "servers"
FILE = ".toml"


class Waits(Protocol):
    @property
    def timeout(self) -> float: ...
    @property
    def patience(self) -> float: ...
    @property
    def connections(self) -> int: ...


def check_waits(one: Waits) -> None:
    """Raises InvalidSetting."""
    for name in ("timeout", "connections"):
        if not getattr(one, name) > 0:
            raise InvalidSetting(f"{name} of a server: got {getattr(one, name)}, expected more than 0.")
    if not one.patience >= 0:
        raise InvalidSetting(f"patience with a server: got {one.patience}, expected 0 or more seconds.")


def check_address(server: str, expected: str, secret: str) -> None:
    """Raises InvalidSetting for what is not ``expected``, an address of a server, or holds a password, which belongs into
    ``secret``."""
    try:
        parts = urlsplit(server)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known or parts.query or parts.fragment:
        raise InvalidSetting(f"the address of a server: got one that is none. Expected {expected}.")
    if parts.password is not None:
        raise InvalidSetting(
            "an address with a password: it would be written into the notes of runs. Put the password into the environment "
            f"variable {secret}."
        )


def without_user(server: str) -> str:
    """The address for messages and requests, which give the user apart."""
    parts = urlsplit(server)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def by_mark(argument: str) -> dict[str, Any]:
    """ADDRESS or ADDRESS#TABLE as settings ``server`` and ``table``."""
    server, _, table = argument.partition("#")
    return {"server": server} | ({"table": table} if table else {})


def described(kind: type[T], argument: str, scheme: str, address: Callable[[str], Mapping[str, Any]] = by_mark) -> list[T]:
    """One for each server. ``argument`` is an address, which ``address`` makes settings of, or the name of a TOML file: its
    keys are settings of all servers, those under ``[[servers]]`` of one.

    Raises InvalidInput for a file that cannot be read, UnknownName and InvalidSetting for settings."""
    what = f"index {scheme}:{argument}"
    if not argument.strip("/ "):
        raise InvalidSetting(f"<--index {scheme}:...>: got no address, expected {scheme}:ADDRESS or {scheme}:FILE.toml.")
    if not argument.endswith(FILE):
        return [_built(kind, address(argument), what, argument)]
    path = home_expanded(argument)
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}, which describes an index: {error.strerror}. Check its name.") from None
    except TOML_ERRORS as error:
        raise InvalidInput(f"{path}, which describes an index, is not valid TOML: {error}.") from None
    several = read.pop(SERVERS, [{}])
    if not isinstance(several, list) or not several or not all(isinstance(one, dict) for one in several):
        raise InvalidInput(f"{path}: got {SERVERS} = {several!r:.60}, expected tables under [[{SERVERS}]].")
    return [_built(kind, {**read, **one}, what, str(path)) for one in several]


def _built(kind: type[T], values: Mapping[str, Any], what: str, source: str) -> T:
    if not values.get("server"):
        raise InvalidSetting(f'{what}: got no server, expected its address, as in server = "..." in the file.')
    return config.build(kind, {key: Given(value, source, 1) for key, value in values.items()}, what)
