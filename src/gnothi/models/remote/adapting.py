"""Requests without the fields that a server refuses. The words of a refusal name them; where they do not, trials find them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from gnothi.models.remote.client import Broken, Client
from gnothi.models.remote.refusals import PREFILL, Refused, about_length, about_value, refused_field
from gnothi.models.remote.requests import RANDOM_SEED
from gnothi.models.remote.settings import OPTIONAL

T = TypeVar("T")

Build = Callable[[Collection[str]], dict[str, Any]]
"""A request without the fields of these names."""
_IN_TURN = (PREFILL, "top_k", "logprobs", "seed", RANDOM_SEED, "top_p", "n", "stop", "temperature")
"""What is left out, one after the other, until a request is taken: the least usual fields first."""
_REASON = 160


class Habits:
    """The fields that a server does not take: ``without`` maps each to the reason. It grows with refusals."""

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
        """The reply, and the request that it answers. ``opening``: nothing is known of the server yet. So fields at which it
        breaks are searched for like those that it refuses, and a request that takes too long is not tried again. Raises as
        ``Client.ask``."""
        while True:
            known = len(self.without)
            request = build(self.without)
            try:
                return await client.ask(path, request, parse, hurried=opening), request
            except Broken as broken:
                if not (opening and by_trying):
                    raise
                self.without |= await _find_refused(client, path, build, self.without, request, broken)
            except Refused as refused:
                if (field := refused_field(refused, request)) is not None and field not in self.without:
                    self._leave_out(field, refused)
                    continue
                if not by_trying or about_length(refused) or about_value(refused, request):
                    raise
                async with self._looking:
                    if known == len(self.without):  # else somebody has found out meanwhile
                        self.without |= await _find_refused(client, path, build, self.without, request, refused)

    def _leave_out(self, field: str, refused: Refused) -> None:
        if field == "max_completion_tokens" and "max_tokens" in self.without:
            raise refused  # a request without any limit is none that we send
        self.without[field] = _reason(refused)
        if field == "seed" and refused.status != 422 and RANDOM_SEED not in refused.reason:
            self.without[RANDOM_SEED] = _reason(refused)


async def _find_refused(
    client: Client,
    path: str,
    build: Build,
    without: Mapping[str, str],
    request: Mapping[str, Any],
    failure: Refused | Broken,
) -> dict[str, str]:
    """The fields without which the request is taken, and why. Raises ``failure`` where a bare one is not taken either."""

    async def accepted(names: Collection[str]) -> bool:
        try:
            await client.ask(path, build({*without, *_both(names)}), lambda data: data, hurried=True)
        except (Refused, Broken):
            return False
        return True

    prefilled = bool(request.get("messages")) and request["messages"][-1].get("role") == "assistant"
    sent = [name for name in _IN_TURN if name in request or (name == PREFILL and prefilled)]
    every = [*sent, *(["max_tokens"] if "max_tokens" in request else [])]
    if not every or not ((sent and await accepted(sent)) or (every != sent and await accepted(every))):
        raise failure
    omitted: list[str] = []
    for name in every:
        omitted.append(name)
        if await accepted(omitted):
            break
    for name in omitted[:-1]:
        if await accepted([one for one in omitted if one != name]):
            omitted.remove(name)
    return dict.fromkeys(_both(omitted), _reason(failure))


def _both(names: Collection[str]) -> list[str]:
    """With the other name of the seed, which else would take its place."""
    return [*names, *([RANDOM_SEED] if "seed" in names else [])]


def _reason(failure: Refused | Broken) -> str:
    """The server's words about the failure, shortened."""
    reason = " ".join((failure.reason if isinstance(failure, Refused) else "the server breaks at it").split())
    return reason if len(reason) <= _REASON else reason[: _REASON - 1] + "…"


def by_setting(names: Collection[str]) -> dict[str, str]:
    """Fields that a user leaves out. Raises nothing: ``RemoteSettings`` has checked them."""
    assert set(names) <= OPTIONAL
    reasons = dict.fromkeys(names, "the setting model.leave_out")
    return reasons | ({RANDOM_SEED: "the setting model.leave_out"} if "seed" in reasons else {})
