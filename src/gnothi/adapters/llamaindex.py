"""LlamaIndex (extra ``llamaindex``): a retriever that searches only when the model does not know, and a query engine."""

from __future__ import annotations

from collections.abc import Mapping

from gnothi.adapters.common import K, as_record, metadata, needed, waited
from gnothi.api.rag import Rag
from gnothi.errors import MissingDependency
from gnothi.types import Passage

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.response.schema import Response
    from llama_index.core.prompts.mixin import PromptMixinType
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingDependency(error.name or "llama-index-core", "llamaindex", "gnothi.adapters.llamaindex") from error


class GnothiRetriever(BaseRetriever):
    """At most ``k`` passages where the model of ``rag`` does not know the answer; none, and no search, where it does.

    ``rag`` is what ``gnothi.open`` gave, with a method that has a gate (``seakr``, say). What was decided is in the metadata of
    every node, under ``gnothi``; no model reads it there."""

    def __init__(self, rag: Rag, k: int = K) -> None:
        super().__init__()
        self.rag, self.k = rag, k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return waited(self.rag, self._aretrieve(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        known, passages = await needed(self.rag, query_bundle.query_str, self.k)
        decided = {"gnothi": as_record(known)} if passages else {}
        return [_node(one.passage, one.score, decided) for one in passages]


class GnothiQueryEngine(BaseQueryEngine):
    """From a question to a response: ``source_nodes`` are what it rests on, ``metadata`` holds all that was decided."""

    def __init__(self, rag: Rag) -> None:
        super().__init__(callback_manager=None)
        self.rag = rag

    def _query(self, query_bundle: QueryBundle) -> Response:
        return waited(self.rag, self._aquery(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        result = await self.rag.aask(query_bundle.query_str)
        return Response(result.text, source_nodes=[_node(one) for one in result.evidence], metadata=as_record(result))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def _node(passage: Passage, score: float | None = None, decided: Mapping[str, object] | None = None) -> NodeWithScore:
    hidden = ["id", "score", "gnothi"]
    node = TextNode(
        id_=passage.id,
        text=passage.text,
        metadata={**metadata(passage, score), **(decided or {})},
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=score)
