"""Haystack (extra ``haystack``): components that answer, or search only when the model does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.adapters.common import K, as_record, needed, waited
from gnothi.api.rag import Rag
from gnothi.api.rag import open as open_rag
from gnothi.errors import MissingDependency, UsageError
from gnothi.types import Passage, ScoredPassage

try:
    from haystack import Document, GeneratedAnswer, component, default_to_dict
except ImportError as error:
    raise MissingDependency(error.name or "haystack-ai", "haystack", "gnothi.adapters.haystack") from error


class _Component:
    """``rag`` is what ``gnothi.open`` gave, or the arguments for it: then it is opened when the pipeline warms up, closed with
    the pipeline, and can be written to YAML."""

    def __init__(self, rag: Rag | Mapping[str, Any]) -> None:
        self.rag = rag
        self._open = rag if isinstance(rag, Rag) else None

    def warm_up(self) -> None:
        if self._open is None and not isinstance(self.rag, Rag):
            self._open = open_rag(**self.rag)

    def close(self) -> None:
        if self._open is not None and self._open is not self.rag:
            self._open.close()
            self._open = None

    def ready(self) -> Rag:
        self.warm_up()
        assert self._open is not None
        return self._open

    def as_dict(self, **parameters: Any) -> dict[str, Any]:
        """Raises UsageError where an open ``rag`` was given, which nothing can write down."""
        if isinstance(self.rag, Rag):
            raise UsageError(
                f"{type(self).__name__}(rag=...): got what gnothi.open returned, which no file can hold, expected its "
                "arguments: {'method': 'seakr', 'model': ..., 'index': ...}."
            )
        return default_to_dict(self, rag=dict(self.rag), **parameters)


@component
class GnothiAnswerer(_Component):
    """An answer to a query, with the passages that it rests on and all that was decided (``meta``)."""

    @component.output_types(answers=list[GeneratedAnswer])
    def run(self, query: str) -> dict[str, Any]:
        return waited(self.ready(), self._answer(query))

    @component.output_types(answers=list[GeneratedAnswer])
    async def run_async(self, query: str) -> dict[str, Any]:
        return await self._answer(query)

    async def _answer(self, query: str) -> dict[str, Any]:
        result = await self.ready().aask(query)
        documents = [_document(one) for one in result.evidence]
        return {"answers": [GeneratedAnswer(data=result.text, query=query, documents=documents, meta=as_record(result))]}

    def to_dict(self) -> dict[str, Any]:
        return self.as_dict()


@component
class GnothiRetriever(_Component):
    """At most ``top_k`` documents where the model does not know the answer; none, and no search, where it does.

    ``knows`` says which, ``draft`` is the model's own answer, ``decision`` all that was decided: a router can go by them."""

    def __init__(self, rag: Rag | Mapping[str, Any], top_k: int = K) -> None:
        _Component.__init__(self, rag)  # the decorator makes another class of this one, which super() does not know
        self.top_k = top_k

    @component.output_types(documents=list[Document], knows=bool, draft=str, decision=dict[str, Any])
    def run(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        return waited(self.ready(), self._retrieve(query, top_k))

    @component.output_types(documents=list[Document], knows=bool, draft=str, decision=dict[str, Any])
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        return await self._retrieve(query, top_k)

    async def _retrieve(self, query: str, top_k: int | None) -> dict[str, Any]:
        known, passages = await needed(self.ready(), query, self.top_k if top_k is None else top_k)
        documents = [_scored(one) for one in passages]
        return {"documents": documents, "knows": known.knows, "draft": known.draft, "decision": as_record(known)}

    def to_dict(self) -> dict[str, Any]:
        return self.as_dict(top_k=self.top_k)


def _document(passage: Passage) -> Document:
    return Document(id=passage.id, content=passage.text, meta={**passage.metadata, "title": passage.title})


def _scored(one: ScoredPassage) -> Document:
    return Document(
        id=one.passage.id, content=one.passage.text, meta={**one.passage.metadata, "title": one.passage.title}, score=one.score
    )
