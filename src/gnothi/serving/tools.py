"""Tools for programs that speak MCP (modelcontextprotocol.io): ask, know, search. Over HTTP beside the other routes, or over
stdin and stdout (`gnothi mcp`)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server.mcpserver import Context as Call
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import ToolAnnotations
from pydantic import Field, WithJsonSchema

from gnothi.errors import GnothiError
from gnothi.events import Event, Listener, UnknownKeys
from gnothi.retrieval.filtering import unknown_keys
from gnothi.retrieval.filters import as_filters
from gnothi.serving.conversation import question as checked
from gnothi.serving.failures import refusal
from gnothi.serving.rendered_answer import EventNarrator, Link, warnings
from gnothi.serving.service import Answered, Service, SetUp, open_service
from gnothi.session.plan import Plan
from gnothi.types import Passage
from gnothi.version import __version__

INSTRUCTIONS = (
    "Answers questions from a language model's own memory where it is sure, and from an index of passages where it is not. Use "
    "ask for an answer with its sources, know to find out whether the model knows something (nothing is searched), search for "
    "passages alone."
)
LONGEST = 8_000
MOST = 100
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True)
class Source:
    """A passage that the answer rests on, with what is known of it."""

    id: str
    title: str
    text: str
    url: str | None
    metadata: dict[str, str | int | float | bool]


@dataclass(frozen=True)
class Answer:
    """An answer with how it came about."""

    id: str
    answer: str
    question: str
    model: str
    from_memory: bool
    sources: list[Source]
    uncertainty: float | None
    probability_wrong: float | None
    decisions: list[str]
    warnings: list[str]


@dataclass(frozen=True)
class Known:
    """Whether the model knows the answer; nothing was searched."""

    question: str
    model: str
    knows: bool
    draft: str
    signal: str
    score: float | None
    threshold: float | None
    probability_wrong: float | None


@dataclass(frozen=True)
class Hit:
    """A passage with its retriever's score; higher is better."""

    id: str
    title: str
    text: str
    score: float
    url: str | None
    metadata: dict[str, str | int | float | bool]


@dataclass(frozen=True)
class SearchResult:
    """What a search found, best first."""

    query: str
    passages: list[Hit]
    warnings: list[str]


@dataclass(frozen=True)
class Caller:
    """``listeners`` hear what its questions cost; ``link`` makes a passage's address for it."""

    listeners: Sequence[Listener] = ()
    link: Link | None = None

    def url(self, passage: Passage) -> str | None:
        return None if self.link is None else self.link(passage)


Turn = Callable[[Call[Any, Any]], AbstractAsyncContextManager[Caller]]
"""Inside, a question of this caller may be asked."""


@asynccontextmanager
async def _free(_: Call[Any, Any]) -> AsyncIterator[Caller]:
    yield Caller()


Asking = Annotated[str, Field(description="The question, as one sentence that stands alone.")]
Filtering = Annotated[
    Any,  # what is of another form is refused by ``as_filters``, which says what is expected
    WithJsonSchema({"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}]}),
    Field(description="Only passages whose metadata pass all: KEY=VALUE, as source=handbook.pdf, date>=2025-01, lang!=de."),
]
Model = Annotated[str | None, Field(description="The set-up that answers; none: the first. The tool's description lists them.")]


class Tools:
    """``turn`` lets callers in; ``server`` is what speaks MCP, ``managers`` what does so over HTTP."""

    def __init__(self, service: Service, turn: Turn = _free, longest: int = LONGEST) -> None:
        self._service, self._turn, self._longest = service, turn, longest
        self.managers: list[StreamableHTTPSessionManager] = []
        self.server: MCPServer[Any] = MCPServer("gnothi", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")
        models = f" Models: {', '.join(one.id for one in service.setups.values())}."
        for tool, title, description in (
            (self.ask, "Ask a question", "Answer a question: from memory where the model is sure, else with a search."),
            (self.know, "Does the model know this?", "Tell whether the model knows an answer by itself. Nothing is searched."),
            (self.search, "Search passages", "The passages of the index that fit a query best."),
        ):
            self.server.add_tool(tool, title=title, description=description + models, annotations=_READS)

    async def ask(self, call: Call[Any, Any], question: Asking, filters: Filtering = None, model: Model = None) -> Answer:
        """Tells what is decided on the way as progress."""
        setup, text = self._setup(model), self._checked(question, "question")
        narrate = EventNarrator()
        news: asyncio.Queue[Event | None] = asyncio.Queue()

        async def work() -> Answer:
            try:
                async with self._turn(call) as caller:
                    narrowing, listeners = as_filters(filters), (*caller.listeners, news.put_nowait)
                    return _answer(await self._service.ask(setup, text, filters=narrowing, listeners=listeners), caller)
            finally:
                news.put_nowait(None)

        task, step = asyncio.ensure_future(work()), 0
        try:
            while (event := await news.get()) is not None:
                if (lines := narrate(event)) is not None:
                    step += 1
                    await call.report_progress(step, None, _first(lines.text))
            with _tool_errors():
                return await task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    async def know(self, call: Call[Any, Any], question: Asking, model: Model = None) -> Known:
        setup, text = self._setup(model), self._checked(question, "question")
        with _tool_errors():
            async with self._turn(call) as caller:
                knowledge = await self._service.know(setup, text, listeners=caller.listeners)
        return Known(
            text,
            setup.id,
            knowledge.knows,
            knowledge.draft,
            knowledge.signal,
            _finite(knowledge.score),
            _finite(knowledge.threshold),
            _finite(knowledge.probability_wrong),
        )

    async def search(
        self,
        call: Call[Any, Any],
        query: Annotated[str, Field(description="Words to search for.")],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=MOST)] = 5,
        filters: Filtering = None,
        model: Model = None,
    ) -> SearchResult:
        setup, text = self._setup(model), self._checked(query, "query")
        warnings: list[str] = []

        def note_unknown(event: Event) -> None:
            if isinstance(event, UnknownKeys):
                warnings.append(f"Filter: {unknown_keys(event)}.")

        with _tool_errors():
            async with self._turn(call) as caller:
                scored = await self._service.search(
                    setup, text, k, filters=as_filters(filters), listeners=(*caller.listeners, note_unknown)
                )
                hits = [
                    Hit(
                        one.passage.id,
                        one.passage.title,
                        one.passage.text,
                        one.score,
                        caller.url(one.passage),
                        dict(one.passage.metadata),
                    )
                    for one in scored
                ]
        return SearchResult(text, hits, warnings)

    def _setup(self, model: str | None) -> SetUp:
        with _tool_errors():
            return next(iter(self._service.setups.values())) if model is None else self._service.find(model)

    def _checked(self, text: str, name: str) -> str:
        with _tool_errors():
            return checked(text, name, self._longest)


async def serve_stdio(plans: Mapping[str, Plan], ready: Callable[[Service], None]) -> None:
    """Speak MCP over stdin and stdout until stdin ends; ``ready`` hears when the models are open. Raises as
    ``open_service``."""
    async with open_service(plans) as service:
        ready(service)
        await Tools(service).server.run_stdio_async()


def _answer(answered: Answered, caller: Caller) -> Answer:
    result, narrate = answered.result, EventNarrator()
    narrated = [narrate(event) for event in result.events]
    return Answer(
        id=answered.id,
        answer=result.text,
        question=result.question.text,
        model=answered.setup.id,
        from_memory=not result.cost.retrievals or result.found_nothing,
        sources=[Source(one.id, one.title, one.text, caller.url(one), dict(one.metadata)) for one in result.evidence],
        uncertainty=_finite(result.uncertainty),
        probability_wrong=_finite(result.probability_wrong),
        decisions=[_first(one.text) for one in narrated if one is not None],
        warnings=warnings(answered),
    )


def _first(text: str) -> str:
    return text.partition("\n")[0]


class _tool_errors:
    """An error becomes one of a tool, whose text a client sees; what is not its fault is sent without details."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, ToolError):
            raise ToolError(refusal(error).message) from (error if isinstance(error, GnothiError) else None)


def _finite(number: float | None) -> float | None:
    """JSON has no number for infinity."""
    return None if number is None or not math.isfinite(number) else number
