"""What every part of the server shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from gnothi.serving.drift import Drifts
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
