"""A component of Haystack's that retrieves."""

from __future__ import annotations

from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.foreign import Foreign, Found, imported, passage
from gnothi.schemes import Scheme
from gnothi.types import Passage

_NAME = "retriever"


def _open(argument: str) -> Retriever:
    component = imported("haystack", argument, "haystack", _fits)
    from haystack import Pipeline

    pipeline = Pipeline()  # warms up, and awaits or runs on a thread, as the component is made
    pipeline.add_component(_NAME, component)
    inputs, outputs = (held.get(_NAME, {}) for held in (pipeline.inputs(), pipeline.outputs()))
    if "query" not in inputs or "documents" not in outputs:
        raise IndexUnavailable(
            f"<--index haystack:{argument}>: got {type(component).__name__} with inputs {', '.join(inputs)}, expected one that "
            "takes a query and gives documents. A pipeline becomes one as a SuperComponent."
        )

    async def find(query: str, k: int) -> Found:
        given = {"query": query} | ({"top_k": k} if "top_k" in inputs else {})
        documents = (await pipeline.run_async({_NAME: given}))[_NAME]["documents"]
        return [(_passage(one), one.score) for one in documents]

    return Foreign(f"haystack:{argument}", find)


def _fits(thing: Any) -> bool:
    return hasattr(thing, "__haystack_input__") and not isinstance(thing, type)


def _passage(document: Any) -> Passage:
    return passage(document.id, document.content or "", document.meta)


SCHEME = Scheme(open=_open, summary="a retriever of Haystack's: haystack:MODULE:OBJECT")
