"""``gnothi.open``: a method over a model and an index, ready to be asked."""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from gnothi import methods
from gnothi.api import given
from gnothi.api.given import refuse_running_loop
from gnothi.calibration.file import Calibration, read
from gnothi.concurrency import Loop
from gnothi.config import Settings
from gnothi.errors import InvalidSetting, UsageError
from gnothi.events import Event, Listener
from gnothi.models.remote.budget import Budget, spending
from gnothi.retrieval.filtering import filtered
from gnothi.retrieval.filters import Filters, as_filters
from gnothi.roles import GATED
from gnothi.session.asking import Result, ask_method
from gnothi.session.default_method import default_method
from gnothi.session.knowledge import Knowledge, know, uncalibrated
from gnothi.session.plan import Execution, Plan, Request, resolve, together
from gnothi.session.resources import Opened, opened
from gnothi.types import Question, ScoredPassage

if TYPE_CHECKING:
    from gnothi.protocols import KnowledgeGraph, LanguageModel, Method, Retriever
    from gnothi.retrieval.foreign import Searches


class Rag:
    """A method, ready to answer. Made by ``gnothi.open``; close it with ``close``, or use it as a context manager.

    Everything runs on a thread of its own: ``ask`` waits for an answer, ``aask`` awaits it, ``stream`` and ``astream`` show
    what happens on the way. Questions that are asked at the same time, from any thread or loop, are decoded together.
    """

    def __init__(self, plan: Plan, budget: Budget | None = None) -> None:
        self.plan = plan
        self.budget = budget or Budget(plan.max_cost, plan.max_tokens)
        self._loop = Loop()
        self._stack = AsyncExitStack()
        self._closed = False
        try:
            self.opened, self._method = self._loop.run(self._open())
        except BaseException:
            self._closed = True
            self._loop.stop()
            raise

    # --- what it is ------------------------------------------------------------------------------------------------------

    @property
    def method(self) -> str:
        return self.plan.methods[0].name

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting with its value."""
        return self.plan.methods[0].values

    @property
    def notes(self) -> tuple[str, ...]:
        """How a threshold came about, and the like."""
        return self.plan.notes

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        index = self.opened.retriever and self.opened.retriever.name
        return f"<gnothi.Rag {self.method}, model {self.opened.model.name!r}, index {index!r}{state}>"

    # --- asking ----------------------------------------------------------------------------------------------------------

    def ask(self, question: str | Question, choices: Sequence[str] = (), *, filters: Any = None) -> Result:
        """The answer with everything that was decided on the way. ``choices``: pick one of them. ``filters``: search only
        passages whose metadata pass these too, as in ``[("date", ">=", "2025-01")]``.

        Raises InvalidInput for what is no question, UsageError inside a running event loop or when closed, and what the model
        or the index raises."""
        asked = self._ready(question, choices)
        refuse_running_loop("ask()", "rag.aask(question)")
        return self._loop.run(self._ask(asked, as_filters(filters)))

    async def aask(self, question: str | Question, choices: Sequence[str] = (), *, filters: Any = None) -> Result:
        """As ``ask``, awaited."""
        return await self._loop.arun(self._ask(self._ready(question, choices), as_filters(filters)))

    def stream(self, question: str | Question, choices: Sequence[str] = ()) -> Iterator[Event | Result]:
        """Every event as it happens (``gnothi.events``), and the ``Result`` last. Leaving early stops the work."""
        asked = self._ready(question, choices)
        refuse_running_loop("stream()", "rag.astream(question)", "async for event in")
        return self._stream(asked)

    def _stream(self, asked: Question) -> Iterator[Event | Result]:
        heard: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        work = self._loop.submit(self._ask(asked, (), heard.put))
        work.add_done_callback(lambda _: heard.put(None))
        try:
            while (event := heard.get()) is not None:
                yield event
            yield work.result()
        finally:
            work.cancel()

    async def astream(self, question: str | Question, choices: Sequence[str] = ()) -> AsyncIterator[Event | Result]:
        """As ``stream``, for ``async for``."""
        asked = self._ready(question, choices)
        heard: asyncio.Queue[Event | None] = asyncio.Queue()
        here = asyncio.get_running_loop()

        def tell(event: Event | None) -> None:
            here.call_soon_threadsafe(heard.put_nowait, event)

        work = self._loop.submit(self._ask(asked, (), tell))
        work.add_done_callback(lambda _: tell(None))
        try:
            while (event := await heard.get()) is not None:
                yield event
            result = await asyncio.wrap_future(work)
            yield result
        finally:
            work.cancel()

    # --- its parts -------------------------------------------------------------------------------------------------------

    def know(self, question: str | Question) -> Knowledge:
        """Whether the model knows the answer by itself, by the method's gate; nothing is searched.

        Raises InvalidSetting for a method without a gate that a signal decides."""
        asked = self._ready(question, ())
        refuse_running_loop("know()", "rag.aknow(question)")
        return self._loop.run(know(self.plan, self.opened, asked))

    async def aknow(self, question: str | Question) -> Knowledge:
        """As ``know``, awaited."""
        return await self._loop.arun(know(self.plan, self.opened, self._ready(question, ())))

    def search(self, query: str, k: int, filters: Any = None) -> tuple[ScoredPassage, ...]:
        """At most k passages of the index that pass the filters, best first. Raises InvalidSetting where there is no index, or
        one that cannot filter."""
        retriever = filtered(self._index(), as_filters(filters))
        refuse_running_loop("search()", "rag.asearch(query, k)")
        return self._loop.run(retriever.search(query, k))

    async def asearch(self, query: str, k: int, filters: Any = None) -> tuple[ScoredPassage, ...]:
        """As ``search``, awaited."""
        return await self._loop.arun(filtered(self._index(), as_filters(filters)).search(query, k))

    def _index(self) -> Retriever:
        self.check_open()
        if self.opened.retriever is None:
            raise InvalidSetting(f"this gnothi.Rag ({self.method}) has no index to search in: open one with <--index PATH>.")
        return self.opened.retriever

    # --- the end ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of model and index; what was given as an object stays open. Closing twice does no harm."""
        if not self._closed:
            self._closed = True
            self._loop.run(self._stack.aclose())
            self._loop.stop()

    async def aclose(self) -> None:
        """As ``close``, awaited."""
        if not self._closed:
            self._closed = True
            await self._loop.arun(self._stack.aclose())
            await asyncio.to_thread(self._loop.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # --- on its own loop -------------------------------------------------------------------------------------------------

    async def _open(self) -> tuple[Opened, Method]:
        with spending(self.budget):
            found = await self._stack.enter_async_context(opened([self.plan]))
            try:
                return found, found.method(self.plan.methods[0])
            except BaseException:
                await self._stack.aclose()
                raise

    async def _ask(self, asked: Question, filters: Filters, *listeners: Any) -> Result:
        found = self.opened.narrowed(filters)
        method = found.method(self.plan.methods[0]) if filters else self._method
        return await ask_method(self.plan, found, method, asked, listeners)

    def _ready(self, question: object, choices: Sequence[str]) -> Question:
        self.check_open()
        return given.as_question(question, choices)

    def check_open(self) -> None:
        """Raises UsageError where it is closed."""
        if self._closed:
            raise UsageError(f"this gnothi.Rag ({self.method}) is closed: open another one with gnothi.open(...).")

    @property
    def loop(self) -> Loop:
        """Where its model lives: what shares the model has to run there."""
        return self._loop


def open(
    method: str | type[Method] | Callable[..., Any] | None = None,
    model: str | LanguageModel | Callable[[str], Any] | None = None,
    index: str | os.PathLike[str] | Searches | Callable[[str, int], Any] | None = None,
    graph: str | os.PathLike[str] | KnowledgeGraph | None = None,
    *,
    calibration: str | os.PathLike[str] | Calibration | None = None,
    ignore_mismatch: bool = False,
    seed: int = 0,
    model_settings: Mapping[str, Any] | None = None,
    index_settings: Mapping[str, Any] | None = None,
    config: str | os.PathLike[str] | None = None,
    budget: Budget | None = None,
    filters: Any = None,
    **settings: Any,
) -> Rag:
    """Open a method over a model and an index.

    ``method``: a name (``gnothi list methods`` lists them), ``module:function``, or a function (``gnothi.method``) or class of
    your own; None is that of the calibration, seakr for a model that brings thresholds, else rag. ``model``, ``index``,
    ``graph``: names, folders, or objects of your own, which may be a function of a text and one of a query and k; None is the
    calibration's model, else the laboratory's, an index or graph only with the laboratory's model. ``settings`` are the
    method's, by name; one that names a model, a signal, a probe or the like takes an object or such a function, too.
    ``model_settings`` and ``index_settings`` are those of ``--set model.KEY`` and ``--set index.KEY``. ``calibration``: a
    file, or what ``gnothi.calibrate`` returned; ``ignore_mismatch``: also where it was made for another model.
    ``config``: a TOML file of settings, or a run's, below these. ``budget``: what models behind an API may cost. ``filters``:
    search only passages whose metadata pass all of them, as in ``[("source", "=", "handbook.pdf"), "date>=2025-01"]``.

    Raises UnknownName and InvalidSetting (before anything is loaded), OtherModel, MissingCapability, ModelUnavailable,
    IndexUnavailable, MissingDependency.
    """
    return Rag(_plan(dict(locals())), budget)


async def aopen(*args: Any, **keywords: Any) -> Rag:
    """As ``open``, without blocking the event loop while the model is loaded."""
    return await asyncio.to_thread(open, *args, **keywords)


def _plan(args: dict[str, Any]) -> Plan:
    settings, named = args["settings"], args["method"] or given.repeated(args["config"]).get("method")
    name = named and methods.spec(named).name
    found = args["calibration"] = None if args["calibration"] is None else read(args["calibration"])
    suits = GATED if found is None else default_method(None, Settings(), found)[0]
    given.check_keywords(settings, name or suits, [key for key in inspect.signature(open).parameters if key != "settings"])
    return plan_of(given.request_of(args, [name] if name else None), args["seed"])


def plan_of(request: Request, seed: int = 0) -> Plan:
    """The plan of a method that is to be asked. Raises as ``resolve`` and ``together``."""
    return replace(together(resolve(request)), execution=Execution(seed))


async def ask_once(
    plan: Plan, question: Question, budget: Budget, listeners: Sequence[Listener] = (), ready: Callable[[], None] = lambda: None
) -> tuple[Result, str | None]:
    """The answer, and a warning where the gate's threshold was chosen for other models. ``listeners`` hear of everything as it
    happens; ``ready`` is called when model and index are open. Raises what opening and asking raise."""
    with spending(budget):
        async with opened([plan]) as found:
            method, doubtful = found.method(plan.methods[0]), uncalibrated(plan, found)
            ready()
            return await ask_method(plan, found, method, question, listeners), doubtful
