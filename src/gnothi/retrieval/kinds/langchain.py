"""A retriever of LangChain's."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from gnothi.protocols import Retriever
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.foreign import Foreign, Found, Narrowable, imported, passage, passes
from gnothi.schemes import Scheme
from gnothi.types import Passage


def _open(argument: str) -> Retriever:
    retriever = imported("langchain", argument, "langchain_core.retrievers", _fits)

    async def find(query: str, k: int, filters: Filters = ()) -> Found:
        if filters:  # a store of vectors that takes a function of documents
            more = {**retriever.search_kwargs, "k": k, "filter": lambda one: passes(one.metadata, filters)}
            narrowed = retriever.model_copy(update={"search_kwargs": more})
            return [(_passage(one), one.metadata.get("score")) for one in await narrowed.ainvoke(query)]
        taken = inspect.signature(retriever._get_relevant_documents).parameters
        if "k" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
            documents = await retriever.ainvoke(query, k=k)
        else:
            asked = retriever
            if hasattr(retriever, "k"):
                asked = copy.copy(retriever)  # for searches run side by side
                asked.k = k
            documents = await asked.ainvoke(query)
        return [(_passage(one), one.metadata.get("score")) for one in documents]

    return (Narrowable if _by_function(retriever) else Foreign)(f"langchain:{argument}", find)


def _by_function(retriever: Any) -> bool:
    """Whether it filters by any function of documents, and so by ours; a form of filters that all stores share there is not."""
    from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever

    if not isinstance(retriever, VectorStoreRetriever) or "filter" in retriever.search_kwargs:
        return False
    return isinstance(retriever.vectorstore, InMemoryVectorStore)


def _fits(thing: Any) -> bool:
    from langchain_core.retrievers import BaseRetriever

    return isinstance(thing, BaseRetriever)


def _passage(document: Any) -> Passage:
    return passage(str(document.id or ""), document.page_content, document.metadata)


SCHEME = Scheme(open=_open, summary="a retriever of LangChain's: langchain:MODULE:OBJECT")
