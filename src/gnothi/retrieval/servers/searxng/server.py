"""Where a SearXNG server is and how it is asked."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from gnothi.errors import InvalidSetting
from gnothi.retrieval.servers.settings import check_address, check_waits, described, without_user

PASSWORD = "SEARXNG_PASSWORD"


@dataclass(frozen=True, slots=True)
class Server:
    """``server`` is an address (``http://localhost:8080``), with a user where a proxy before it wants one, whose password is in
    the environment variable SEARXNG_PASSWORD. ``language`` (a code), ``categories``, ``engines`` and ``time_range`` are
    SearXNG's own parameters, empty for the server's defaults. ``pages``: the pages that the first results lead to
    are read, too. Times are in seconds."""

    server: str
    language: str = ""
    categories: str = ""
    engines: str = ""
    time_range: str = ""
    pages: bool = False
    timeout: float = 15.0
    patience: float = 60.0
    connections: int = 4

    def __post_init__(self) -> None:
        check_waits(self)
        check_address(self.server, "one of the form http://HOST:PORT", PASSWORD)

    @property
    def address(self) -> str:
        """Without the user."""
        return without_user(self.server).removesuffix("/search")

    @property
    def name(self) -> str:
        return f"searxng:{self.address}"

    @property
    def parameters(self) -> dict[str, str]:
        """Of every search."""
        chosen = {name: getattr(self, name) for name in ("language", "categories", "engines", "time_range")}
        return {"format": "json"} | {name: value for name, value in chosen.items() if value}

    def headers(self) -> dict[str, str]:
        """Raises InvalidSetting where a user is named and the password is not set."""
        user = urlsplit(self.server).username
        if not user:
            return {}
        if not (password := os.environ.get(PASSWORD, "")):
            raise InvalidSetting(f"{self.name} wants a password: set the environment variable {PASSWORD} to that of {user}.")
        return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def server(argument: str) -> Server:
    """Of an address, perhaps with settings behind a question mark, or of a TOML file. Raises InvalidInput, UnknownName and
    InvalidSetting."""
    found = described(Server, argument, "searxng", _address)
    if len(found) > 1:
        raise InvalidSetting(f"index searxng:{argument}: got {len(found)} servers, expected one.")
    return found[0]


def _address(argument: str) -> Mapping[str, Any]:
    address, _, settings = argument.partition("?")
    return {"server": address, **dict(parse_qsl(settings, keep_blank_values=True))}
