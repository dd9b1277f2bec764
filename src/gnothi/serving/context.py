"""What every part of the server shares."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from gnothi.serving.drift import Drifts
from gnothi.serving.failures import Refusal
from gnothi.serving.feedback import Feedback
from gnothi.serving.keys import Account, Keys
from gnothi.serving.links import Links
from gnothi.serving.metrics import Metrics, Room
from gnothi.serving.service import Service
from gnothi.serving.settings import ServerSettings

if TYPE_CHECKING:
    from gnothi.serving.tools import Tools


@dataclass(frozen=True)
class Context:
    """``keys`` is None where nobody needs one, ``feedback`` where it is not taken, ``tools`` (over MCP) without the package;
    ``closing`` is called when the server stops."""

    service: Service
    settings: ServerSettings
    room: Room
    links: Links
    metrics: Metrics
    drifts: Drifts
    keys: Keys | None = None
    feedback: Feedback | None = None
    tools: Tools | None = None
    closing: list[Callable[[], object]] = field(default_factory=list)

    def base(self, request: Request) -> str:
        """How clients reach this server, without a slash at the end."""
        return (self.settings.public_url or str(request.base_url)).rstrip("/")

    def account(self, request: Request) -> Account:
        """Whose question it is; ``access.Access`` has put it there."""
        account: Account = request.scope["gnothi.account"]
        return account


DRAINED = 16
"""So many times the limit is read and dropped, so that a client that is still sending hears why."""


async def json_object(request: Request, longest: int) -> dict[str, Any]:
    """Raises Refusal: 413 for a body that is too long, 400 for one that is no JSON object."""
    declared = request.headers.get("content-length", "")
    digits = declared.isascii() and declared.isdigit()
    if digits and (len(declared) > 20 or int(declared) > DRAINED * longest):
        raise _too_long(longest)
    pieces, read = [], 0
    async for piece in request.stream():
        read += len(piece)
        if read <= longest:
            pieces.append(piece)
        elif read > DRAINED * longest:
            break
    if read > longest:
        raise _too_long(longest)
    try:
        body = json.loads(b"".join(pieces))
    except (ValueError, RecursionError):
        raise Refusal(400, "The body is not valid JSON.", code="invalid_json") from None
    if not isinstance(body, dict):
        raise Refusal(400, "The body: expected a JSON object.", code="invalid_json")
    return body


def _too_long(longest: int) -> Refusal:
    return Refusal(413, f"The body is too long: expected at most {longest:,} bytes.", code="request_too_large")
