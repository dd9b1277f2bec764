"""LangChain (extra ``langchain``): a retriever that searches only when the model does not know, a runnable, a tool."""

from __future__ import annotations

from typing import Any, Literal

from gnothi.adapters.common import K, as_record, metadata, needed, waited
from gnothi.api.rag import Rag
from gnothi.errors import MissingDependency
from gnothi.session.asking import Result
from gnothi.types import Passage

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from pydantic import BaseModel, ConfigDict, Field
except ImportError as error:
    raise MissingDependency(error.name or "langchain-core", "langchain", "gnothi.adapters.langchain") from error


class GnothiRetriever(BaseRetriever):
    """At most ``k`` passages where the model of ``rag`` does not know the answer; none, and no search, where it does.

    ``rag`` is what ``gnothi.open`` gave, with a method that has a gate (``seakr``, say). What was decided is in the metadata of
    every passage, under ``gnothi``."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    rag: Rag
    k: int = K

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        return waited(self.rag, self._documents(query, k))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        return await self._documents(query, k)

    async def _documents(self, query: str, k: int | None) -> list[Document]:
        known, passages = await needed(self.rag, query, self.k if k is None else k)
        decided = as_record(known) if passages else {}
        return [_document(one.passage, one.score, decided) for one in passages]


class GnothiRunnable(Runnable[str, AIMessage]):
    """From a question to an answer. ``response_metadata`` holds all that was decided, as `gnothi ask --json` does."""

    def __init__(self, rag: Rag) -> None:
        self.rag = rag

    def invoke(self, input: str, config: RunnableConfig | None = None, **_: Any) -> AIMessage:
        return self._call_with_config(lambda question: waited(self.rag, self._message(question)), input, config)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **_: Any) -> AIMessage:
        return await self._acall_with_config(self._message, input, config)

    async def _message(self, question: str) -> AIMessage:
        result = await self.rag.aask(question)
        return AIMessage(result.text, response_metadata={"model_name": result.model} | as_record(result))


class Asking(BaseModel):
    """What the tool takes."""

    question: str = Field(description="The question, as one sentence that stands alone.")


class GnothiTool(BaseTool):
    """For agents: an answer, with a search where the model is not sure. The artifact holds all that was decided."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    rag: Rag
    name: str = "ask_gnothi"
    description: str = "Answers a question, with the passages that the answer rests on; from memory where the model is sure."
    args_schema: type[BaseModel] = Asking
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _run(self, question: str) -> tuple[str, dict[str, Any]]:
        return waited(self.rag, self._answer(question))

    async def _arun(self, question: str) -> tuple[str, dict[str, Any]]:
        return await self._answer(question)

    async def _answer(self, question: str) -> tuple[str, dict[str, Any]]:
        result = await self.rag.aask(question)
        return as_text(result), as_record(result)


def as_text(result: Result) -> str:
    """The answer as another model reads it: with its sources, or with the word that it is from memory."""
    sources = [f"[{one.id}] {one.title}: {one.text}" if one.title else f"[{one.id}] {one.text}" for one in result.evidence]
    return "\n".join([result.text, *(["Sources:", *sources] if sources else ["(from memory, nothing was searched)"])])


def _document(passage: Passage, score: float, decided: dict[str, Any]) -> Document:
    return Document(id=passage.id, page_content=passage.text, metadata=metadata(passage, score) | {"gnothi": decided})
