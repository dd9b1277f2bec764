"""A Ray of ours, in this process: actors that can be killed, nodes as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from gnothi.runs.host import Host


class Lost(Exception):
    """Of our Ray: an actor is gone."""


class Actor:
    """A handle: ``actor.work.remote(...)`` runs the host's method, until the actor is killed."""

    def __init__(self, host: Host) -> None:
        self.host, self.dead = host, False

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *given: self.begun(name, *given))

    def begun(self, name: str, *given: Any) -> asyncio.Future[Any]:
        answer = asyncio.ensure_future(self.ask(name, *given))
        answer.add_done_callback(lambda one: one.cancelled() or one.exception())  # nobody may wait for it
        return answer

    async def ask(self, name: str, *given: Any) -> Any:
        if self.dead:
            raise Lost("The actor died: its node has terminated.\nMore of it.")
        answer = asyncio.ensure_future(getattr(self.host, name)(*given))
        while not answer.done():
            await asyncio.wait([answer], timeout=0.01)
            if self.dead:
                answer.cancel()
                raise Lost("The actor died: its node has terminated.\nMore of it.")
        return answer.result()


class FakeRay(SimpleNamespace):
    """As much of Ray as is used, with two nodes."""

    def __init__(self, *nodes: dict[str, float]) -> None:
        self.exceptions = SimpleNamespace(RayActorError=Lost, ObjectLostError=Lost)
        self.resources = nodes or ({"CPU": 4.0}, {"CPU": 2.0})
        self.actors: list[Actor] = []
        self.options: dict[str, Any] = {}
        self.addresses: list[str | None] = []
        self.up = self.refuses = False

    def is_initialized(self) -> bool:
        return self.up

    def init(self, address: str | None, **_: Any) -> None:
        if self.refuses:
            raise ConnectionError("nobody answers there.")
        self.addresses.append(address)
        self.up = True

    def shutdown(self) -> None:
        self.up = False

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": one} for one in self.resources] + [{"Alive": False, "Resources": {"CPU": 99.0}}]

    def remote(self, **options: Any) -> Callable[[type], Any]:
        self.options = options
        return lambda kind: SimpleNamespace(remote=lambda *given: self.started(kind(*given)))

    def started(self, host: Host) -> Actor:
        self.actors.append(Actor(host))
        return self.actors[-1]

    def kill(self, actor: Actor) -> None:
        actor.dead = True
