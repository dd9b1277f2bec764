"""A retriever of LlamaIndex'."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from gnothi.protocols import Retriever
from gnothi.retrieval.foreign import Foreign, Found, imported, passage
from gnothi.schemes import Scheme
from gnothi.types import Passage


def _open(argument: str) -> Retriever:
    retriever = imported("llamaindex", argument, "llama_index.core.retrievers", _fits)
    from llama_index.core.retrievers import BaseRetriever

    blocks = type(retriever)._aretrieve is BaseRetriever._aretrieve  # which calls the one that does

    async def find(query: str, k: int) -> Found:
        asked = retriever
        if hasattr(retriever, "similarity_top_k"):
            asked = copy.copy(retriever)  # for searches run side by side
            asked.similarity_top_k = k
        nodes = await (asyncio.to_thread(asked.retrieve, query) if blocks else asked.aretrieve(query))
        return [(_passage(one.node), one.score) for one in nodes]

    return Foreign(f"llamaindex:{argument}", find)


def _fits(thing: Any) -> bool:
    from llama_index.core.retrievers import BaseRetriever

    return isinstance(thing, BaseRetriever)


def _passage(node: Any) -> Passage:
    return passage(node.node_id, node.get_content(), node.metadata)


SCHEME = Scheme(open=_open, summary="a retriever of LlamaIndex': llamaindex:MODULE:OBJECT")
