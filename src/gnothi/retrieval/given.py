"""A retriever of the caller's own, as plain as may be: a function or an object with ``search``, which need not be ``async``."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Iterable
from typing import Any

from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.protocols import Retriever
from gnothi.retrieval.foreign import Foreign, Found
from gnothi.types import Passage, ScoredPassage


def as_retriever(given: Any) -> Any:
    """What ``(query, k)`` can be asked of as a Retriever; anything else, and a Retriever, as it is.

    It gives passages, scored passages or texts, best first. One that is not ``async`` is asked in a thread. Raises
    InvalidSetting for one that takes other arguments."""
    plain = inspect.isroutine(given) or isinstance(given, functools.partial)
    search = given if plain else getattr(given, "search", None)
    if given is None or isinstance(given, str | type) or not callable(search):
        return given
    _check_takes(given, search)
    if isinstance(given, Retriever) and inspect.iscoroutinefunction(search):
        return given

    async def find(query: str, k: int) -> Found:
        found = search(query, k) if inspect.iscoroutinefunction(search) else await asyncio.to_thread(search, query, k)
        return [_passage(one) for one in _listed(await found if inspect.isawaitable(found) else found)]

    name = getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__)
    return Foreign(str(name), find)


def _check_takes(given: Any, search: Any) -> None:
    """Raise InvalidSetting where a query and a number cannot be given; what does not say what it takes may take them."""
    try:
        takes = inspect.signature(search)
    except (TypeError, ValueError):
        return
    try:
        takes.bind("query", 1)
    except TypeError:
        what = given.__name__ if given is search else f"search{takes}"
        raise InvalidSetting(
            f"index: got an object of the class {type(given).__name__} whose {what} does not take a query and a number of "
            "passages, expected (query, k)."
        ) from None


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
    raise InvalidInput(f"the search of your index gave {one!r:.80}, expected a gnothi.Passage, a scored one, or a text.")
