"""What stands beside the model behind an API of its own: encoders and re-rankers, by ``NAME@ADDRESS``.

They are asked as models are: the same client, so the same tries, waits and limits, and tokens count to the budget."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, UsageError
from gnothi.models.remote import budget as budgets
from gnothi.models.remote.client import Client
from gnothi.models.remote.refusals import Refused
from gnothi.models.remote.replies import InvalidReply
from gnothi.models.remote.settings import RemoteSettings, Server

T = TypeVar("T")
_SO_MANY = re.compile(r"batch|too (?:many|large|long|big)|maxim|most|limit|exceed|length|tokens", re.IGNORECASE)
"""In the words of a refusal that fewer texts may not meet."""


class BesideSettings(RemoteSettings):
    """Those of a model; only the address can be given."""

    __slots__ = ()
    settable: ClassVar[bool] = False


class TextEmbeddingsSettings(BesideSettings):
    """Hugging Face's Text Embeddings Inference, at any address."""

    __slots__ = ()
    server = Server(key="TEI_API_KEY")


class RerankSettings(BesideSettings):
    """A server of one's own (vLLM, llama.cpp, Infinity ...), at any address."""

    __slots__ = ()
    server = Server(key="RERANK_API_KEY")


class CohereSettings(BesideSettings):
    __slots__ = ()
    server = Server("https://api.cohere.com/v2", key="COHERE_API_KEY")


class JinaSettings(BesideSettings):
    __slots__ = ()
    server = Server("https://api.jina.ai/v1", key="JINA_API_KEY")


def connected(kind: str, scheme: str, argument: str, settings: type[BesideSettings], named: bool = True) -> tuple[str, Client]:
    """The name that the server knows, and who asks it. ``kind`` is what errors call it; ``named`` False: the argument is an
    address alone. Raises UsageError for an argument that is none, InvalidSetting, ModelUnavailable, MissingDependency."""
    name, _, address = argument.strip().partition("@http") if named else ("", "", argument.strip().removeprefix("http"))
    address = f"http{address}" if address else ""
    if (named and not name) or not (address or settings.server.address or settings.server.variable):
        expected = f"{scheme}:NAME@http://..." if named else f"{scheme}:http://..."
        raise UsageError(f"{kind} {f'{scheme}:{argument}'!r:.200}: expected the server's address, as in {expected}")
    try:
        located = settings(base_url=address).located()
    except InvalidSetting as error:
        raise InvalidSetting(error.message.replace("setting 'model.base_url'", f"the {kind}'s address")) from None
    budget = budgets.current()
    if budget.max_cost is not None:
        raise InvalidSetting(
            f"<--max-cost> cannot count what the {kind} {f'{scheme}:{name}'!r} costs: its price is not known. Limit tokens "
            "with <--max-tokens>."
        )
    return name, Client(f"{scheme}:{name or located.base_url}", located, budget)


class Portions:
    """Splits what is asked into requests of ``items`` and ``size`` bytes at most; fewer as soon as a server refuses so many."""

    def __init__(self, items: int, size: int) -> None:
        self._items, self._size = items, size

    async def ask(self, items: Sequence[str], ask: Callable[[Sequence[str]], Any]) -> list[Any]:
        """What ``ask`` gives for each portion, joined. Raises what it raises."""
        results = await gather(*(self._portion(portion, ask) for portion in self._split(items)))
        return [result for portion in results for result in portion]

    async def _portion(self, items: Sequence[str], ask: Callable[[Sequence[str]], Any]) -> list[Any]:
        try:
            return list(await ask(items))
        except Refused as error:
            if len(items) == 1 or not (error.status == 413 or _SO_MANY.search(error.reason)):
                raise
            self._items = max(1, min(self._items, len(items) // 2))
        return await self.ask(items, ask)

    def _split(self, items: Sequence[str]) -> list[list[str]]:
        portions: list[list[str]] = []
        size = 0
        for item in items:
            size += (own := len(item.encode("utf-8", "replace")))
            if not portions or len(portions[-1]) >= self._items or size > self._size:
                portions.append([])
                size = own
            portions[-1].append(item)
        return portions


def in_order(entries: object, many: int, value: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """The values of a list of objects, each at its ``index``; without any, as they come. Raises InvalidReply unless there is
    one for each of ``many``."""
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) for one in entries):
        raise InvalidReply("expected a list of objects")
    if len(entries) != many:
        raise InvalidReply(f"results: got {len(entries)}, expected {many}, one for each text")
    places = [
        one.get("index", place if all("index" not in other for other in entries) else None) for place, one in enumerate(entries)
    ]
    if any(isinstance(place, bool) or not isinstance(place, int) for place in places) or sorted(places) != list(range(many)):
        raise InvalidReply(f"expected each index from 0 to {many - 1} once")
    return [value(one) for _, one in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]


def number(value: object) -> float:
    """A finite one. Raises InvalidReply."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidReply(f"got {value!s:.40}, expected a number")
    return float(value)
