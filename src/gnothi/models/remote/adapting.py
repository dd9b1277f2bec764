"""Requests without what a server refuses: found by its words, or, where these name nothing, by trying."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from gnothi.models.remote.client import Broken, Client
from gnothi.models.remote.refusals import PREFILL, Refused, about_length, callers, refused_field
from gnothi.models.remote.requests import RANDOM_SEED
from gnothi.models.remote.settings import OPTIONAL

T = TypeVar("T")

Build = Callable[[Collection[str]], dict[str, Any]]
"""A request without the fields of these names."""
_IN_TURN = (PREFILL, "top_k", "logprobs", "seed", RANDOM_SEED, "top_p", "n", "stop", "temperature")
"""What is left out, one after the other, until a request is taken: the least usual fields first."""
_REASON = 160


class Habits:
    """What a server does not take: ``without`` names the fields, and why. It grows as they are met."""

    def __init__(self, without: Mapping[str, str]) -> None:
        self.without = dict(without)
        self._looking = asyncio.Lock()

    async def ask(
        self,
        client: Client,
        path: str,
        build: Build,
        parse: Callable[[object], T],
        by_trying: bool = True,
        opening: bool = False,
    ) -> tuple[T, dict[str, Any]]:
        """The reply, and the request that it answers. ``opening``: nothing is known of the server yet, so that fields which it
        breaks at are looked for as those that it refuses, and what takes too long is not tried again. Raises as
        ``Client.ask``."""
        while True:
            known = len(self.without)
            request = build(self.without)
            try:
                return await client.ask(path, request, parse, hurried=opening), request
            except Broken as broken:
                if not (opening and by_trying):
                    raise
                self.without |= await _tried(client, path, build, self.without, request, broken)
            except Refused as refused:
                if (field := refused_field(refused, request)) is not None and field not in self.without:
                    self._leave_out(field, refused)
                    continue
                if not by_trying or about_length(refused) or callers(refused, request):
                    raise
                async with self._looking:
                    if known == len(self.without):  # else somebody has found out meanwhile
                        self.without |= await _tried(client, path, build, self.without, request, refused)

    def _leave_out(self, field: str, refused: Refused) -> None:
        if field == "max_completion_tokens" and "max_tokens" in self.without:
            raise refused  # a request without any limit is none that we send
        self.without[field] = _reason(refused)
        if field == "seed" and refused.status != 422 and RANDOM_SEED not in refused.said:
            self.without[RANDOM_SEED] = _reason(refused)


async def _tried(
    client: Client,
    path: str,
    build: Build,
    without: Mapping[str, str],
    request: Mapping[str, Any],
    failure: Refused | Broken,
) -> dict[str, str]:
    """The fields without which the request is taken, and why. Raises ``failure`` where a bare one is not taken either."""

    async def taken(names: Collection[str]) -> bool:
        try:
            await client.ask(path, build({*without, *_both(names)}), lambda data: data, hurried=True)
        except (Refused, Broken):
            return False
        return True

    begun = bool(request.get("messages")) and request["messages"][-1].get("role") == "assistant"
    sent = [name for name in _IN_TURN if name in request or (name == PREFILL and begun)]
    every = [*sent, *(["max_tokens"] if "max_tokens" in request else [])]
    if not every or not ((sent and await taken(sent)) or (every != sent and await taken(every))):
        raise failure
    left: list[str] = []
    for name in every:
        left.append(name)
        if await taken(left):
            break
    for name in left[:-1]:
        if await taken([one for one in left if one != name]):
            left.remove(name)
    return dict.fromkeys(_both(left), _reason(failure))


def _both(names: Collection[str]) -> list[str]:
    """With the other name of the seed, which else would take its place."""
    return [*names, *([RANDOM_SEED] if "seed" in names else [])]


def _reason(failure: Refused | Broken) -> str:
    """What the server said of it."""
    said = " ".join((failure.said if isinstance(failure, Refused) else "the server breaks at it").split())
    return said if len(said) <= _REASON else said[: _REASON - 1] + "…"


def by_setting(names: Collection[str]) -> dict[str, str]:
    """Fields that a user leaves out. Raises nothing: ``RemoteSettings`` has checked them."""
    assert set(names) <= OPTIONAL
    found = dict.fromkeys(names, "the setting model.leave_out")
    return found | ({RANDOM_SEED: "the setting model.leave_out"} if "seed" in found else {})
