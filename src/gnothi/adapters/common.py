"""What the adapters share: ask first, search where the model does not know."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from gnothi.api.rag import Rag
from gnothi.runs.rows import jsonable
from gnothi.session.asking import Result
from gnothi.session.knowledge import Knowledge
from gnothi.types import Passage, ScoredPassage

T = TypeVar("T")
K = 4
"""Passages, unless more are asked for: as many as LangChain's own retrievers give."""


def waited(rag: Rag, work: Coroutine[Any, Any, T]) -> T:
    """Wait for work of ``rag``, also inside a running event loop, as blocking calls of these frameworks do."""
    return rag.loop.run(work)


async def needed(rag: Rag, query: str, k: int) -> tuple[Knowledge, tuple[ScoredPassage, ...]]:
    """What the model knows, and at most k passages where it does not. Raises as ``Rag.know`` and ``Rag.search``."""
    known = await rag.aknow(query)
    return known, () if known.knows else await rag.asearch(query, k)


def as_record(result: Result | Knowledge) -> dict[str, Any]:
    """All that was decided, JSON-ready: as ``gnothi ask --json``, or as ``/v1/know`` of a server."""
    record: dict[str, Any] = jsonable(result.as_dict())
    return record


def metadata(passage: Passage, score: float | None = None) -> dict[str, Any]:
    """What there is beside a passage's text."""
    return {**passage.metadata, "id": passage.id, "title": passage.title} | ({} if score is None else {"score": score})
