"""``langchain:``, ``haystack:`` and ``llamaindex:`` indexes: retrievers of the frameworks themselves, over one corpus."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from zlib import crc32

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.testing.conformance.retriever import CORPUS, RetrieverConformance
from gnothi.types import Passage, Value

DIMENSIONS = 512
PASSAGES = tuple(one for one in CORPUS if one.id != "twin-b")
"""No two of them are equal: which one comes first is the frameworks' own business."""


def vector(text: str) -> list[float]:
    """A bag of words, and a little of what all texts have: cosine similarity counts those in common."""
    found = [0.01, *[0.0] * DIMENSIONS]
    for word in re.findall(r"\w+", text.lower()):
        found[1 + crc32(word.encode("utf-8", "replace")) % DIMENSIONS] += 1.0
    length = math.sqrt(sum(one * one for one in found))
    return [one / length for one in found]


def known(one: Passage) -> dict[str, Value]:
    return {**one.metadata, "title": one.title}


class _Named(RetrieverConformance):
    """The module ``theirs`` beside which we are holds ``retriever``."""

    lexical = False
    corpus = PASSAGES
    scheme = ""
    source = ""

    @pytest.fixture
    def retriever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Retriever]:
        (tmp_path / "theirs.py").write_text(dedent(self.source), encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        yield open_index(f"{self.scheme}:theirs:make")
        sys.modules.pop("theirs", None)

    def test_it_is_known_by_its_name_alone(self) -> None:
        assert index_fingerprint(f"{self.scheme}:theirs:make") == ""

    @pytest.mark.usefixtures("retriever")
    def test_what_is_no_retriever_is_refused(self) -> None:
        with pytest.raises(IndexUnavailable):
            open_index(f"{self.scheme}:theirs:PASSAGES")


class TestLangChain(_Named):
    scheme = "langchain"
    source = """
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore
        from tests.retrieval.test_frameworks import PASSAGES, known, vector

        class Words(Embeddings):
            def embed_documents(self, texts):
                return [vector(text) for text in texts]

            def embed_query(self, text):
                return vector(text)

        def make():
            store = InMemoryVectorStore(Words())
            store.add_documents([Document(id=one.id, page_content=one.text, metadata=known(one)) for one in PASSAGES])
            return store.as_retriever(search_kwargs={"k": 2})
        """

    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("langchain_core", reason="LangChain is not installed: make test-beside")


class TestLangChainWithItsOwnK(TestLangChain):
    """As LangChain's BM25 retriever: how many it finds is a field."""

    source = """
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever
        from tests.retrieval.test_frameworks import PASSAGES, known, vector

        class Words(BaseRetriever):
            k: int = 2

            def _get_relevant_documents(self, query, *, run_manager):
                asked = vector(query)
                near = lambda one: sum(a * b for a, b in zip(asked, vector(one.text)))
                best = sorted(PASSAGES, key=near, reverse=True)[: self.k]
                return [Document(id=one.id, page_content=one.text, metadata=known(one)) for one in best]

        def make():
            return Words()
        """


class TestHaystack(_Named):
    scheme = "haystack"
    lexical = True
    source = """
        from haystack import Document
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
        from haystack.document_stores.in_memory import InMemoryDocumentStore
        from tests.retrieval.test_frameworks import PASSAGES

        def make():
            store = InMemoryDocumentStore()
            store.write_documents([Document(id=one.id, content=one.text, meta={"title": one.title}) for one in PASSAGES])
            return InMemoryBM25Retriever(store, top_k=2)
        """

    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("haystack", reason="Haystack is not installed: make test-beside")

    async def test_a_component_that_takes_no_query_is_refused(self, retriever: Retriever, tmp_path: Path) -> None:
        await retriever.aclose()
        (tmp_path / "prompts.py").write_text(
            "from haystack.components.builders import PromptBuilder\ndef make():\n    return PromptBuilder('{{a}}')\n"
        )
        with pytest.raises(IndexUnavailable):
            open_index("haystack:prompts:make")


class TestHaystackPipeline(TestHaystack):
    """A whole pipeline as one component."""

    source = """
        from haystack import Document, Pipeline, SuperComponent
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
        from haystack.document_stores.in_memory import InMemoryDocumentStore
        from tests.retrieval.test_frameworks import PASSAGES

        def make():
            store = InMemoryDocumentStore()
            store.write_documents([Document(id=one.id, content=one.text, meta={"title": one.title}) for one in PASSAGES])
            pipeline = Pipeline()
            pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=2))
            return SuperComponent(
                pipeline,
                input_mapping={"query": ["words.query"], "top_k": ["words.top_k"]},
                output_mapping={"words.documents": "documents"},
            )
        """


class TestLlamaIndex(_Named):
    scheme = "llamaindex"
    source = """
        from llama_index.core import VectorStoreIndex
        from llama_index.core.base.embeddings.base import BaseEmbedding
        from llama_index.core.schema import MetadataMode, TextNode
        from tests.retrieval.test_frameworks import PASSAGES, known, vector

        class Words(BaseEmbedding):
            def _get_query_embedding(self, query):
                return vector(query)

            async def _aget_query_embedding(self, query):
                return vector(query)

            def _get_text_embedding(self, text):
                return vector(text)

        def make():
            nodes = [TextNode(id_=one.id, text=one.text, metadata=known(one)) for one in PASSAGES]
            return VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=2)
        """

    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed: make test-beside")


class TestLlamaIndexThatBlocks(TestLlamaIndex):
    """A retriever of one's own, which knows no asyncio."""

    source = """
        from llama_index.core.retrievers import BaseRetriever
        from llama_index.core.schema import NodeWithScore, TextNode
        from tests.retrieval.test_frameworks import PASSAGES, known, vector

        class Words(BaseRetriever):
            def _retrieve(self, query_bundle):
                asked = vector(query_bundle.query_str)
                near = [(sum(a * b for a, b in zip(asked, vector(one.text))), one) for one in PASSAGES]
                return [
                    NodeWithScore(node=TextNode(id_=one.id, text=one.text, metadata=known(one)), score=score)
                    for score, one in sorted(near, key=lambda pair: -pair[0])
                ]

        def make():
            return Words()
        """
