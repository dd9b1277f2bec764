"""Retrievers of other frameworks, by import path: what they find becomes passages of ours."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import importlib
import inspect
import math
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from gnothi.errors import GnothiError, IndexUnavailable, InvalidInput, InvalidSetting, MissingDependency
from gnothi.own_code import running
from gnothi.protocols import Retriever
from gnothi.retrieval.filtering import Narrowed
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.results import check_k, ranked
from gnothi.retrieval.terms import flat, terms
from gnothi.schemes import Scheme
from gnothi.types import Passage, ScoredPassage

SECONDS = 120.0
"""After which a search counts as failed."""

Find = Callable[..., Awaitable["Results"]]
"""Query, k and, of one that can, filters."""

_NOT_KEPT = frozenset(("id", "title", "score"))
"""Of a document's metadata: a passage has places of its own for them."""

Results = Sequence[tuple[Passage, Any]]
"""Passages in the framework's own order, with its scores where it tells them. An id may be empty."""


@dataclass(frozen=True)
class Foreign:
    """``find`` asks the other framework for at most k passages, best first; ``given`` is what it searches, where that is an
    object of the caller's."""

    name: str
    find: Find
    seconds: float = SECONDS
    given: Any = None

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
                results = await (self.find(query, k, filters) if filters else self.find(query, k))
                results = [one for one in results if not filters or passes(one[0].metadata, filters)]
        except TimeoutError:
            raise IndexUnavailable(f"{self.name} gave nothing within {self.seconds:g} s. Look at what it asks.") from None
        except GnothiError:
            raise
        except Exception as error:
            raise IndexUnavailable(f"{self.name} failed with {type(error).__name__}: {error!s:.300}") from error
        return ranked(scored(named(results)), k)

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


def scored(results: Results) -> list[ScoredPassage]:
    """The scores as they came where every passage has one and they fall; else 1 / rank, so that the order stays."""
    scores = [score for _, score in results if isinstance(score, int | float) and math.isfinite(score)]
    if len(scores) < len(results) or any(after > before for before, after in pairwise(scores)):
        scores = [1 / rank for rank in range(1, len(results) + 1)]
    return [ScoredPassage(passage, float(score)) for (passage, _), score in zip(results, scores, strict=True)]


def named(results: Results) -> Results:
    """Each passage once, the first time that it came. One without an id, or with that of another text, has a digest for it."""
    held: dict[str, tuple[Passage, Any]] = {}
    for passage, score in results:
        standing = held.get(passage.id)
        if not passage.id or (standing is not None and (standing[0].title, standing[0].text) != (passage.title, passage.text)):
            digest = hashlib.blake2b(f"{passage.title}\0{passage.text}".encode("utf-8", "replace"), digest_size=8)
            passage = replace(passage, id=digest.hexdigest())
        held.setdefault(passage.id, (passage, score))
    return [*held.values()]


def imported(scheme: str, argument: str, framework: str, fits: Callable[[Any], bool] | None = None) -> Any:
    """The object of MODULE:OBJECT, which may lie in the folder that we are in. A function without arguments is called.
    What ``fits``: by default a ``BaseRetriever`` of the framework.

    Raises MissingDependency without the ``framework``, IndexUnavailable for what cannot be imported or does not fit."""
    try:
        library = importlib.import_module(framework)
    except ImportError as error:
        raise MissingDependency(error.name or framework, scheme, f"<--index {scheme}:{argument}>") from error
    fits = fits or (lambda target: isinstance(target, library.BaseRetriever))
    module, colon, name = argument.partition(":")
    if not (module and colon and name):
        raise IndexUnavailable(
            f"<--index {scheme}:{argument}>: expected {scheme}:MODULE:OBJECT, as in {scheme}:mine:retriever."
        )
    if "" not in sys.path:
        sys.path.append("")
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
        if not fits(target) and callable(target):
            target = target()
    except Exception as error:
        raise IndexUnavailable(
            f"<--index {scheme}:{argument}> cannot be imported: {type(error).__name__}: {error!s:.300}. Expected "
            f"{scheme}:MODULE:OBJECT, a retriever or a function that makes one, in a module that Python finds from here."
        ) from error
    if not fits(target):
        raise IndexUnavailable(
            f"<--index {scheme}:{argument}>: got {target!r:.80}, expected a retriever of {framework.partition('.')[0]}, or a "
            "function that makes one."
        )
    return target


# A retriever of LangChain's.


def _open_langchain(argument: str) -> Retriever:
    retriever = imported("langchain", argument, "langchain_core.retrievers")

    async def find(query: str, k: int, filters: Filters = ()) -> Results:
        if filters:  # a store of vectors that takes a function of documents
            more = {**retriever.search_kwargs, "k": k, "filter": lambda one: passes(one.metadata, filters)}
            narrowed = retriever.model_copy(update={"search_kwargs": more})
            return [(_passage_langchain(one), one.metadata.get("score")) for one in await narrowed.ainvoke(query)]
        taken = inspect.signature(retriever._get_relevant_documents).parameters
        if "k" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
            documents = await retriever.ainvoke(query, k=k)
        else:
            searched = retriever
            if hasattr(retriever, "k"):
                searched = copy.copy(retriever)  # for searches run side by side
                searched.k = k
            documents = await searched.ainvoke(query)
        return [(_passage_langchain(one), one.metadata.get("score")) for one in documents]

    return (Narrowable if _by_function(retriever) else Foreign)(f"langchain:{argument}", find)


def _by_function(retriever: Any) -> bool:
    """Whether it filters by any function of documents, and so by ours; a form of filters that all stores share there is not."""
    from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever

    if not isinstance(retriever, VectorStoreRetriever) or "filter" in retriever.search_kwargs:
        return False
    return isinstance(retriever.vectorstore, InMemoryVectorStore)


def _passage_langchain(document: Any) -> Passage:
    return passage(str(document.id or ""), document.page_content, document.metadata)


LANGCHAIN = Scheme(open=_open_langchain, summary="a retriever of LangChain's: langchain:MODULE:OBJECT")

# A component of Haystack's that retrieves.

_NAME = "retriever"


def _open_haystack(argument: str) -> Retriever:
    component = imported(
        "haystack",
        argument,
        "haystack",
        lambda candidate: hasattr(candidate, "__haystack_input__") and not isinstance(candidate, type),
    )
    from haystack import Pipeline

    pipeline = Pipeline()  # warms up, and awaits or runs on a thread, as the component is made
    pipeline.add_component(_NAME, component)
    inputs, outputs = (held.get(_NAME, {}) for held in (pipeline.inputs(), pipeline.outputs()))
    if "query" not in inputs or "documents" not in outputs:
        raise IndexUnavailable(
            f"<--index haystack:{argument}>: got {type(component).__name__} with inputs {', '.join(inputs)}, expected one that "
            "takes a query and gives documents. A pipeline becomes one as a SuperComponent."
        )

    async def find(query: str, k: int) -> Results:
        arguments = {"query": query} | ({"top_k": k} if "top_k" in inputs else {})
        documents = (await pipeline.run_async({_NAME: arguments}))[_NAME]["documents"]
        return [(passage(one.id, one.content or "", one.meta), one.score) for one in documents]

    return Foreign(f"haystack:{argument}", find)


HAYSTACK = Scheme(open=_open_haystack, summary="a retriever of Haystack's: haystack:MODULE:OBJECT")

# A retriever of LlamaIndex'.


def _open_llamaindex(argument: str) -> Retriever:
    retriever = imported("llamaindex", argument, "llama_index.core.retrievers")
    from llama_index.core.retrievers import BaseRetriever

    blocks = type(retriever)._aretrieve is BaseRetriever._aretrieve  # which calls the one that does

    async def find(query: str, k: int) -> Results:
        searched = retriever
        if hasattr(retriever, "similarity_top_k"):
            searched = copy.copy(retriever)  # for searches run side by side
            searched.similarity_top_k = k
        nodes = await (asyncio.to_thread(searched.retrieve, query) if blocks else searched.aretrieve(query))
        results = [(one.node, one.score) for one in nodes]
        return [(passage(node.node_id, node.get_content(), node.metadata), score) for node, score in results]

    return Foreign(f"llamaindex:{argument}", find)


LLAMAINDEX = Scheme(open=_open_llamaindex, summary="a retriever of LlamaIndex': llamaindex:MODULE:OBJECT")


# A retriever of the caller's own: a function or an object with a search, async or not.


class Searches(Protocol):
    """Whatever has such a ``search``, ``async`` or not."""

    def search(self, query: str, k: int, /) -> Any:
        """At most k passages, scored passages, texts or records, best first."""
        ...


def as_retriever(index: Any, key: str = "index") -> Any:
    """What ``(query, k)`` can be asked of as a Retriever; a name, and a Retriever, as it is.

    It gives passages, scored passages, texts or records, best first. One that is not ``async`` is asked in a thread. Raises
    InvalidSetting for anything else, and for one that takes other arguments."""
    if index is None or isinstance(index, str):
        return index
    search = None if isinstance(index, type) else getattr(index, "search", index if callable(index) else None)
    if not callable(search):
        lacks = "" if isinstance(index, type) else " It lacks search."
        raise InvalidSetting(
            f"{key}: got {_what(index)}, expected a name, a folder, a function of (query, k), or an object that has "
            f"search(query, k).{lacks}"
        )
    _check_takes(index, search, key)
    if isinstance(index, Retriever) and inspect.iscoroutinefunction(search):
        return index

    name = str(getattr(index, "name", None) or getattr(index, "__name__", type(index).__name__))

    async def find(query: str, k: int) -> Results:
        with running(f"index {name!r}"):
            results = search(query, k) if inspect.iscoroutinefunction(search) else await asyncio.to_thread(search, query, k)
            results = await results if inspect.isawaitable(results) else results
        return [_as_passage(one) for one in _listed(results)]

    return Foreign(name, find, given=index)


def _check_takes(index: Any, search: Any, key: str) -> None:
    """Raise InvalidSetting where a query and a number cannot be given; what does not say what it takes may take them."""
    try:
        takes = inspect.signature(search)
    except (TypeError, ValueError):
        return
    try:
        takes.bind("query", 1)
    except TypeError:
        raise InvalidSetting(f"{key}: got {_what(index)} that searches by {takes}, expected (query, k).") from None


def _what(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"the function {value.__name__}" if inspect.isfunction(value) else f"an object of the class {type(value).__name__}"


def _listed(results: Any) -> Iterable[Any]:
    if not isinstance(results, Iterable) or isinstance(results, str):
        raise InvalidInput(f"the search of your index gave {results!r:.80}, expected a list of passages or texts.")
    return results


def _as_passage(result: Any) -> tuple[Passage, float | None]:
    if isinstance(result, ScoredPassage):
        return result.passage, result.score
    if isinstance(result, Passage):
        return result, None
    if isinstance(result, str):
        return Passage("", result), None
    if isinstance(result, Mapping) and isinstance(result.get("text"), str):
        known = {key: value for key, value in result.items() if key != "text"}
        return passage("" if result.get("id") is None else str(result["id"]), result["text"], known), result.get("score")
    raise InvalidInput(
        f"the search of your index gave {result!r:.80}, expected a gnothi.Passage, a scored one, a text, or a record with a "
        'text: {"text": ..., "id": ..., "title": ..., "score": ...}.'
    )
