"""What every part of the server shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from gnothi.serving.keys import Account, Keys
from gnothi.serving.links import Links
from gnothi.serving.metrics import Metrics
from gnothi.serving.room import Room
from gnothi.serving.service import Service
from gnothi.serving.settings import ServerSettings


@dataclass(frozen=True)
class Context:
    """``keys`` is None where nobody needs one; ``closing`` is called when the server stops."""

    service: Service
    settings: ServerSettings
    room: Room
    links: Links
    metrics: Metrics
    keys: Keys | None = None
    closing: list[Callable[[], object]] = field(default_factory=list)

    def base(self, request: Request) -> str:
        """How clients reach this server, without a slash at the end."""
        return (self.settings.public_url or str(request.base_url)).rstrip("/")

    def account(self, request: Request) -> Account:
        """Whose question it is; ``access.Access`` has put it there."""
        account: Account = request.scope["gnothi.account"]
        return account
