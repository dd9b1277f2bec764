"""A retriever of the caller's own, as plain as may be: a function or an object with ``search``, which need not be ``async``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.own_code import running
from gnothi.protocols import Retriever
from gnothi.retrieval.foreign import Foreign, Found, passage
from gnothi.types import Passage, ScoredPassage


class Searches(Protocol):
    """Whatever has such a ``search``, ``async`` or not."""

    def search(self, query: str, k: int, /) -> Any:
        """At most k passages, scored passages, texts or records, best first."""
        ...


def as_retriever(given: Any, key: str = "index") -> Any:
    """What ``(query, k)`` can be asked of as a Retriever; a name, and a Retriever, as it is.

    It gives passages, scored passages, texts or records, best first. One that is not ``async`` is asked in a thread. Raises
    InvalidSetting for anything else, and for one that takes other arguments."""
    if given is None or isinstance(given, str):
        return given
    search = None if isinstance(given, type) else getattr(given, "search", given if callable(given) else None)
    if not callable(search):
        lacks = "" if isinstance(given, type) else " It lacks search."
        raise InvalidSetting(
            f"{key}: got {_what(given)}, expected a name, a folder, a function of (query, k), or an object that has "
            f"search(query, k).{lacks}"
        )
    _check_takes(given, search, key)
    if isinstance(given, Retriever) and inspect.iscoroutinefunction(search):
        return given

    name = str(getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__))

    async def find(query: str, k: int) -> Found:
        with running(f"index {name!r}"):
            found = search(query, k) if inspect.iscoroutinefunction(search) else await asyncio.to_thread(search, query, k)
            found = await found if inspect.isawaitable(found) else found
        return [_passage(one) for one in _listed(found)]

    return Foreign(name, find, given=given)


def _check_takes(given: Any, search: Any, key: str) -> None:
    """Raise InvalidSetting where a query and a number cannot be given; what does not say what it takes may take them."""
    try:
        takes = inspect.signature(search)
    except (TypeError, ValueError):
        return
    try:
        takes.bind("query", 1)
    except TypeError:
        raise InvalidSetting(f"{key}: got {_what(given)} that searches by {takes}, expected (query, k).") from None


def _what(given: Any) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"the function {given.__name__}" if inspect.isfunction(given) else f"an object of the class {type(given).__name__}"


def _listed(found: Any) -> Iterable[Any]:
    if not isinstance(found, Iterable) or isinstance(found, str):
        raise InvalidInput(f"the search of your index gave {found!r:.80}, expected a list of passages or texts.")
    return found


def _passage(one: Any) -> tuple[Passage, float | None]:
    if isinstance(one, ScoredPassage):
        return one.passage, one.score
    if isinstance(one, Passage):
        return one, None
    if isinstance(one, str):
        return Passage("", one), None
    if isinstance(one, Mapping) and isinstance(one.get("text"), str):
        known = {key: value for key, value in one.items() if key != "text"}
        return passage("" if one.get("id") is None else str(one["id"]), one["text"], known), one.get("score")
    raise InvalidInput(
        f"the search of your index gave {one!r:.80}, expected a gnothi.Passage, a scored one, a text, or a record with a text: "
        '{"text": ..., "id": ..., "title": ..., "score": ...}.'
    )
