"""A plan, resolved and opened, for tests of what comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gnothi.config import Settings
from gnothi.protocols import KnowledgeGraph, LanguageModel, Method, Retriever
from gnothi.session.plan import Plan, Request, resolve
from gnothi.session.resources import Opened, opened


@dataclass(frozen=True)
class Found:
    plan: Plan
    opened: Opened

    @property
    def model(self) -> LanguageModel:
        return self.opened.model

    @property
    def retriever(self) -> Retriever | None:
        return self.opened.retriever

    @property
    def graph(self) -> KnowledgeGraph | None:
        return self.opened.graph

    def method(self, name: str) -> Method:
        return self.opened.method(self.plan.method(name))


@asynccontextmanager
async def open_resources(
    model: Any, index: Any, settings: Settings, methods: Sequence[str], graph: Any = None
) -> AsyncIterator[Found]:
    plan = resolve(Request(methods, model, index, graph, settings))
    async with opened([plan]) as found:
        yield Found(plan, found)
