"""What a request carries beside its body: the key, further headers, a query. Nothing that the environment holds for one
address goes to another."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gnothi.errors import InvalidSetting, ModelUnavailable
from gnothi.models.remote.settings import OPENAI, RemoteSettings

NO_KEY = "none"
"""What servers without keys are sent: some want a header, whatever it holds."""
AUTHORIZATION = "Authorization"
_ORGANISATION = ("OpenAI-Organization", "OpenAI-Project")
_CUSTOM = "OPENAI_CUSTOM_HEADERS"
"""A variable from which the official client takes headers, whatever the address."""
_AUTHENTICATES = re.compile(r"auth|key|token", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Credentials:
    """``headers`` and ``query`` of every request, as the official client takes them: some headers are there to be left out.
    ``secrets`` are shown to nobody; ``names`` are those of the headers that carry one; ``unsent`` those that the client wants
    and the server does not."""

    key: str
    headers: dict[str, Any]
    query: dict[str, str]
    secrets: tuple[str, ...]
    names: frozenset[str]
    unsent: frozenset[str]


def credentials(model: str, settings: RemoteSettings) -> Credentials:
    """``settings`` are located. Raises ModelUnavailable where a key is wanted and not there, InvalidSetting for one that cannot
    be sent."""
    import openai

    server = settings.server
    key = os.environ.get(server.key, "").strip() if server.key else ""
    if not (key.isascii() and key.isprintable()):  # said here: who sends it would repeat it
        raise InvalidSetting(
            f"the key in the environment variable {server.key} holds a line break or a character that no key has. "
            "Copy it again, on one line."
        )
    custom, query = settings.values("headers"), settings.values("query")
    if server.versioned and (value := os.environ.get(server.versioned[1], "").strip()):
        query = {server.versioned[0]: value, **query}
    names = {name for name in custom if _AUTHENTICATES.search(name)}
    if not key and not names and settings.base_url == OPENAI:
        raise ModelUnavailable(
            f"model {model!r} is asked at {OPENAI}, which wants a key: set the environment variable {server.key}; "
            "or name another server with <--set model.base_url=http://...>"
        )
    leave_out: Any = openai.Omit()
    headers: dict[str, Any] = {}
    if not _at_openai(settings.base_url):
        inherited = os.environ.get(_CUSTOM, "").split("\n")
        headers = dict.fromkeys((line.partition(":")[0].strip() for line in inherited if ":" in line), leave_out)
        headers |= dict.fromkeys(_ORGANISATION, leave_out)
    headers = {name: value for name, value in headers.items() if name.lower() != AUTHORIZATION.lower()}
    headers[AUTHORIZATION] = f"Bearer {key or NO_KEY}"
    elsewhere = bool(names) or server.header != AUTHORIZATION
    if elsewhere:
        headers[AUTHORIZATION] = f"Bearer {NO_KEY}"
        if key and not names:
            headers[server.header] = key
            names = {server.header}
    by_name = {name.lower() for name in custom}
    headers = {name: value for name, value in headers.items() if name.lower() not in by_name} | custom
    secrets = tuple(sorted({key, *custom.values(), *query.values()} - {""}, key=len, reverse=True))
    unsent = {AUTHORIZATION} if elsewhere and AUTHORIZATION.lower() not in by_name else set()
    return Credentials(key or NO_KEY, headers, query, secrets, frozenset({AUTHORIZATION, *names, *custom}), frozenset(unsent))


def _at_openai(url: str) -> bool:
    """Whether the address is OpenAI's own, or that of one of its regions."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith(".api.openai.com")
