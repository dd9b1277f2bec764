"""Retrievers of other frameworks, by import path: what they find becomes passages of ours."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from gnothi.errors import GnothiError, IndexUnavailable, MissingDependency
from gnothi.protocols import Retriever
from gnothi.retrieval.filtering import Narrowed
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.flat import flat
from gnothi.retrieval.results import check_k, ranked
from gnothi.retrieval.terms import terms
from gnothi.types import Passage, ScoredPassage

SECONDS = 120.0
"""After which a search counts as failed."""

Find = Callable[..., Awaitable["Found"]]
"""Query, k and, of one that can, filters."""

_NOT_KEPT = frozenset(("id", "title", "score"))
"""Of a document's metadata: a passage has places of its own for them."""

Found = Sequence[tuple[Passage, Any]]
"""Passages in the framework's own order, with its scores where it tells them. An id may be empty."""


@dataclass(frozen=True)
class Foreign:
    """``find`` asks the other framework for at most k passages, best first."""

    name: str
    find: Find
    seconds: float = SECONDS

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        """Raises as ``search_among``."""
        return await self.search_among(query, k, ())

    async def search_among(self, query: str, k: int, filters: Filters) -> tuple[ScoredPassage, ...]:
        """Raises IndexUnavailable for whatever the other framework raises, and for no answer in time."""
        check_k(k)
        if not query.strip() or k == 0:
            return ()
        try:
            async with asyncio.timeout(self.seconds):
                found = await (self.find(query, k, filters) if filters else self.find(query, k))
                found = [one for one in found if not filters or passes(one[0].metadata, filters)]
        except TimeoutError:
            raise IndexUnavailable(f"{self.name} gave nothing within {self.seconds:g} s. Look at what it asks.") from None
        except GnothiError:
            raise
        except Exception as error:
            raise IndexUnavailable(f"{self.name} failed with {type(error).__name__}: {error!s:.300}") from error
        return ranked(scored(named(found)), k)

    async def aclose(self) -> None:
        """What was imported stays open: it is its module's."""


class Narrowable(Foreign):
    """One whose ``find`` takes filters, too."""

    def filtered(self, filters: Filters) -> Retriever:
        return Narrowed(self, filters)

    async def keys(self) -> Sequence[str] | None:
        """Nobody knows."""
        return None


def passes(metadata: Mapping[Any, Any], filters: Filters) -> bool:
    """Whether a document with this metadata passes."""
    held = terms(flat(metadata, _NOT_KEPT)[0])
    return all(one.passes(held) for one in filters)


def passage(passage_id: str, text: str, known: Mapping[Any, Any]) -> Passage:
    """A document of another framework's, with what it knows of it: its title, and what is flat as metadata."""
    metadata, _ = flat(known, _NOT_KEPT)
    return Passage(passage_id, text, str(known.get("title") or ""), metadata)


def scored(found: Found) -> list[ScoredPassage]:
    """The scores as they came where every passage has one and they fall; else 1 / rank, so that the order stays."""
    scores = [score for _, score in found if isinstance(score, int | float) and math.isfinite(score)]
    if len(scores) < len(found) or any(after > before for before, after in pairwise(scores)):
        scores = [1 / rank for rank in range(1, len(found) + 1)]
    return [ScoredPassage(passage, float(score)) for (passage, _), score in zip(found, scores, strict=True)]


def named(found: Found) -> Found:
    """Each passage once, the first time that it came. One without an id, or with that of another text, has a digest for it."""
    held: dict[str, tuple[Passage, Any]] = {}
    for passage, score in found:
        standing = held.get(passage.id)
        if not passage.id or (standing is not None and (standing[0].title, standing[0].text) != (passage.title, passage.text)):
            digest = hashlib.blake2b(f"{passage.title}\0{passage.text}".encode("utf-8", "replace"), digest_size=8)
            passage = replace(passage, id=digest.hexdigest())
        held.setdefault(passage.id, (passage, score))
    return [*held.values()]


def imported(scheme: str, argument: str, framework: str, fits: Callable[[Any], bool]) -> Any:
    """The object of MODULE:OBJECT, which may lie in the folder that we are in. A function without arguments is called.

    Raises MissingDependency without the ``framework``, IndexUnavailable for what cannot be imported or does not fit."""
    try:
        importlib.import_module(framework)
    except ImportError as error:
        raise MissingDependency(error.name or framework, scheme, f"<--index {scheme}:{argument}>") from error
    module, colon, name = argument.partition(":")
    if not (module and colon and name):
        raise IndexUnavailable(
            f"<--index {scheme}:{argument}>: expected {scheme}:MODULE:OBJECT, as in {scheme}:mine:retriever."
        )
    if "" not in sys.path:
        sys.path.append("")
    try:
        thing: Any = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
        if not fits(thing) and callable(thing):
            thing = thing()
    except Exception as error:
        raise IndexUnavailable(
            f"<--index {scheme}:{argument}> cannot be imported: {type(error).__name__}: {error!s:.300}. Expected "
            f"{scheme}:MODULE:OBJECT, a retriever or a function that makes one, in a module that Python finds from here."
        ) from error
    if not fits(thing):
        raise IndexUnavailable(
            f"<--index {scheme}:{argument}>: got {thing!r:.80}, expected a retriever of {framework.partition('.')[0]}, or a "
            "function that makes one."
        )
    return thing
