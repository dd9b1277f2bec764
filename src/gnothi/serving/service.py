"""Set-ups that are open, and what can be asked of them. Nothing here knows HTTP: routes, tools and pages call it alike."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gnothi import methods
from gnothi.concurrency import gather, hurried
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.events import Decided, Event, Listener, Searched, UnknownKeys, listen, record
from gnothi.methods.planned import name_of
from gnothi.methods.steps.requirements import follows_instructions
from gnothi.models import RemoteSettings
from gnothi.models.remote.budget import Budget, Prices, spending
from gnothi.protocols import LanguageModel, Method, Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.filtering import filtered, unknown_keys
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.ingest.split import DEFAULT_WORDS, split
from gnothi.retrieval.results import check_k
from gnothi.retrieval.wrappers import Traced
from gnothi.roles import AT_ONCE
from gnothi.runs.runner import CONCURRENCY
from gnothi.seeding import question_scope
from gnothi.serving.attachments import Attached
from gnothi.serving.follow_ups import Turn, standalone
from gnothi.session import sources as specs
from gnothi.session.asking import Result, ask_method
from gnothi.session.knowledge import Knowledge, know, uncalibrated
from gnothi.session.plan import Plan
from gnothi.session.resources import Opened, opened, under_way
from gnothi.types import Answer, Decoding, Passage, Prompt, Question, ScoredPassage, Task

NAME = "attached"


def passages(attached: Sequence[Attached]) -> dict[Passage, Attached]:
    """Passages as an index has them, in order, each with what it is from."""
    return {
        Passage(f"{NAME}:{place}.{part}", text, one.title): one
        for place, one in enumerate(attached, start=1)
        for part, text in enumerate(split([one.text], DEFAULT_WORDS), start=1)
    }


def unread(attached: Sequence[Passage], searches: Sequence[Searched], method: object) -> tuple[str, ...]:
    """A warning where nobody looked at what came with the question."""
    ids = {one.id for one in attached}
    if any(scored.passage.id in ids for search in searches for scored in search.passages):
        return ()
    why = "no search was thought needed" if hasattr(method, "retriever") else "this method reads no passages"
    return (f"What came with the question was not read: {why}.",)


class Handed:
    """What came with the question and what the index finds, in turns, the former first: those that fit the query best, then
    the others as they came. Lives as long as a question."""

    def __init__(self, attached: Sequence[Passage], index: Retriever | None) -> None:
        self._index = index
        self._attached = Traced(_Ranked(attached))

    @property
    def name(self) -> str:
        return NAME if self._index is None else self._index.name

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        check_k(k)
        sources = [self._attached] if self._index is None else [self._attached, self._index]
        rankings = await gather(*(one.search(query, k) for one in sources))
        passages = [one.passage for place in zip_longest(*rankings) for one in place if one is not None][:k]
        return tuple(ScoredPassage(one, 1 / place) for place, one in enumerate(passages, start=1))

    async def aclose(self) -> None:
        """The index is not this one's."""


class _Ranked:
    """All passages by how well they fit a query; those that do not fit come last, in their order."""

    name = NAME

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._index: BM25Index | None = None

    async def search(self, query: str, k: int) -> tuple[ScoredPassage, ...]:
        if self._index is None:
            self._index = await asyncio.to_thread(BM25Index.in_memory, self._passages, NAME)
        fit = await self._index.search(query, k)
        ids = {one.passage.id for one in fit}
        return (*fit, *(ScoredPassage(one, 0.0) for one in self._passages if one.id not in ids))[:k]

    async def aclose(self) -> None:
        """Nothing is held."""


PLAIN = Task("helper")
TOKENS = 300


async def reply(opened: Opened, plan: Plan, question: Question) -> Result:
    """What the model says, whole; of a model with a format of its own, its short answer."""
    direct = methods.create(AT_ONCE, {"model": opened.model}, {})
    if not follows_instructions(opened.model):
        return await ask_method(plan, opened, direct, question)
    started = time.perf_counter()
    with record() as events:
        generation = await opened.model.generate(Prompt(PLAIN, question.text), Decoding(max_tokens=TOKENS))
    answer = Answer(generation.text.strip())
    return Result(question, answer, direct.name, opened.model.name, None, None, time.perf_counter() - started, tuple(events))


LOG = logging.getLogger("gnothi.serving")
QUESTION_ID = "ask"
"""As of `gnothi ask` and ``Rag.ask``: the same question gets the same answer everywhere."""
PREFIX = "gnothi/"
T = TypeVar("T")


@dataclass(frozen=True)
class SetUp:
    """``warnings``: what may mislead, a threshold that was never chosen for the model, say; for whoever runs the server."""

    name: str
    plan: Plan
    opened: Opened
    method: Method
    warnings: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The model's name in OpenAI's API."""
        return f"{PREFIX}{self.name}"

    @property
    def public_warnings(self) -> tuple[str, ...]:
        """As clients may read them: of folders and files the names alone."""
        sources = self.plan.sources
        named = [name_of(one) for one in (sources.model, sources.index, *self.plan.models) if one is not None]
        return tuple(reduce(lambda text, name: text.replace(name, public_name(name)), named, one) for one in self.warnings)


@dataclass(frozen=True, slots=True)
class Answered:
    """``question`` is the question as it came, ``result.question`` the one that was answered: within a conversation, that one
    stands alone. ``warnings`` are of this answer; ``cites`` says, by a passage's id, what it is to be called in it."""

    id: str
    setup: SetUp
    question: str
    result: Result
    warnings: tuple[str, ...] = ()
    attached: int = 0
    cites: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question at its end, however that came: ``kind`` is ask, know, search or helper; ``failure`` is None where it was
    ``answered``, or known, or searched."""

    kind: str
    setup: SetUp
    seconds: float
    events: tuple[Event, ...]
    answered: Answered | None = None
    failure: BaseException | None = None


def public_name(name: str) -> str:
    """Of a folder or file its name alone: where things lie is nobody's business."""
    scheme, colon, rest = name.rpartition(":")
    return f"{scheme}{colon}{Path(rest).name}" if "/" in rest and Path(rest).exists() else name


class Watcher(Protocol):
    """Hears of the events of one question, as a listener, and of its end."""

    def __call__(self, event: Event) -> None: ...

    def end(self, outcome: Outcome) -> None: ...


class Service:
    """``observers`` hear of every question at its end; ``watching`` are called when one begins, with kind, set-up and text, and
    give a watcher of it. ``started`` is in seconds since the epoch."""

    def __init__(self, setups: Mapping[str, SetUp], follow_ups: str = "rewrite") -> None:
        self.setups = dict(setups)
        self.follow_ups = follow_ups
        self.observers: list[Callable[[Outcome], object]] = []
        self.watching: list[Callable[[str, SetUp, str], Watcher]] = []
        self.started = int(time.time())

    def find(self, name: object) -> SetUp:
        """By name, with or without ``gnothi/``. Raises UnknownName."""
        plain = str(name).removeprefix(PREFIX)
        if plain not in self.setups:
            raise UnknownName("model", str(name), [one.id for one in self.setups.values()])
        return self.setups[plain]

    @property
    def slots(self) -> int:
        """How many questions at a time the models gain from."""
        slots = (under_way(one.opened.model) for one in self.setups.values())
        return min((one for one in slots if one), default=CONCURRENCY)

    @property
    def prices(self) -> dict[str, Prices]:
        """Of models behind an API, by their names."""
        settings = {spec: one for setup in self.setups.values() for spec, one in setup.plan.models.items()}
        return {spec: Prices(one.price_in, one.price_out) for spec, one in settings.items() if isinstance(one, RemoteSettings)}

    async def ask(
        self,
        setup: SetUp,
        question: str,
        history: Sequence[Turn] = (),
        attached: Sequence[Attached] = (),
        *,
        filters: Filters = (),
        listeners: Sequence[Listener] = (),
    ) -> Answered:
        """The answer with all that was decided. After a ``history``, the question is made to stand alone first, unless
        ``follow_ups`` says otherwise. What is ``attached`` is found by searches before what the index holds. Raises what the
        model and the index raise."""
        parts = passages(attached)
        opened = setup.opened.narrowed(filters)
        if parts:
            opened = replace(opened, retriever=Handed(tuple(parts), opened.retriever))
        method = opened.method(setup.plan.methods[0]) if parts or filters else setup.method

        async def work() -> Answered:
            standing_alone, warnings = question, tuple[str, ...]()
            before: list[Event] = []
            if history and self.follow_ups == "rewrite":
                with record() as before:
                    standing_alone, warnings = await standalone(setup.opened.model, question, history)
            result = await ask_method(setup.plan, opened, method, Question(QUESTION_ID, standing_alone))
            result = replace(result, events=(*before, *result.events))
            if parts:
                warnings = (*warnings, *unread(tuple(parts), result.searches, method))
            warnings = (
                *warnings,
                *dict.fromkeys(f"Filter: {unknown_keys(one)}." for one in result.events if isinstance(one, UnknownKeys)),
            )
            cites = {passage.id: one.cite for passage, one in parts.items() if one.cite}
            return Answered(uuid.uuid4().hex, setup, question, result, warnings, len(attached), cites)

        return await self._observed("ask", setup, question, work, listeners)

    async def help(self, setup: SetUp, text: str, *, listeners: Sequence[Listener] = ()) -> Answered:
        """What the model says to a prompt of a chat's front end: no gate, no search."""

        async def work() -> Answered:
            result = await reply(setup.opened, setup.plan, Question(QUESTION_ID, text))
            return Answered(uuid.uuid4().hex, setup, text, result)

        return await self._observed("helper", setup, text, work, listeners)

    async def know(self, setup: SetUp, question: str, *, listeners: Sequence[Listener] = ()) -> Knowledge:
        """Whether the model knows this; nothing is searched. Raises InvalidSetting for a method without a gate."""
        return await self._observed(
            "know", setup, question, lambda: know(setup.plan, setup.opened, Question(QUESTION_ID, question)), listeners
        )

    async def search(
        self, setup: SetUp, query: str, k: int, *, filters: Filters = (), listeners: Sequence[Listener] = ()
    ) -> tuple[ScoredPassage, ...]:
        """The best k passages of the set-up's index that pass the filters. Raises InvalidSetting where it has none, or cannot
        filter."""
        retriever = setup.opened.retriever
        if retriever is None:
            raise InvalidSetting(f"model {setup.id!r} has no index to search in. Name a model that has one.")
        among = filtered(retriever, filters)
        return await self._observed("search", setup, query, lambda: among.search(query, k), listeners)

    async def _observed(
        self, kind: str, setup: SetUp, text: str, work: Callable[[], Awaitable[T]], listeners: Sequence[Listener]
    ) -> T:
        events: list[Event] = []
        watchers = [begin(kind, setup, text) for begin in self.watching]
        started = time.perf_counter()
        answered: Answered | None = None
        failure: BaseException | None = None
        try:
            with ExitStack() as stack:
                everyone: tuple[Listener, ...] = (events.append, *watchers, *listeners)
                calm = stack.enter_context(hurried())

                def decided(event: Event) -> None:
                    if isinstance(event, Decided):
                        calm()

                for listener in (*everyone, decided):
                    stack.enter_context(listen(listener))
                stack.enter_context(question_scope(setup.plan.execution.seed, QUESTION_ID))
                result = await work()
            if isinstance(result, Answered):
                answered = result
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            outcome = Outcome(kind, setup, time.perf_counter() - started, tuple(events), answered, failure)
            for hear in (*self.observers, *(watcher.end for watcher in watchers)):
                try:
                    hear(outcome)
                except Exception as error:  # noqa: BLE001 - an answer is not lost because somebody could not note it
                    LOG.error("an observer failed: %s", type(error).__name__)


@asynccontextmanager
async def open_service(plans: Mapping[str, Plan], follow_ups: str = "rewrite") -> AsyncIterator[Service]:
    """Open what all plans name, each model once, and close it at the end.

    Raises what opening raises, InvalidSetting and MissingCapability."""
    first = next(iter(plans.values()))
    async with AsyncExitStack() as stack:
        stack.enter_context(spending(Budget(first.max_cost, first.max_tokens)))
        models: list[tuple[str, Any, LanguageModel]] = []
        sets: list[tuple[Plan, Opened]] = []
        setups: dict[str, SetUp] = {}
        for name, plan in plans.items():
            resources = next((one for other, one in sets if _alike(plan, other)), None)
            if resources is None:
                together = [other for other in plans.values() if _alike(plan, other)]
                named = {spec: one for other in together for spec, one in other.models.items()}
                shared: dict[Any, Any] = {
                    (LanguageModel, spec): _shared(models, stack, spec, settings) for spec, settings in named.items()
                }
                resources = await stack.enter_async_context(opened(together, shared))
                sets.append((plan, resources))
            doubt = uncalibrated(plan, resources)
            setups[name] = SetUp(
                name, plan, resources, resources.method(plan.methods[0]), (*plan.warnings, *([doubt] if doubt else ()))
            )
        yield Service(setups, follow_ups)


def _alike(one: Plan, other: Plan) -> bool:
    """Whether they open the same: sources, and models with the same settings."""
    common = one.models.keys() & other.models.keys()
    return one.sources == other.sources and all(one.models[spec] == other.models[spec] for spec in common)


def _shared(models: list[tuple[str, Any, LanguageModel]], stack: AsyncExitStack, spec: str, settings: Any) -> LanguageModel:
    for name, used, model in models:
        if (name, used) == (spec, settings):
            return model
    model = specs.open_model(spec, settings)
    stack.push_async_callback(model.aclose)
    models.append((spec, settings, model))
    return model
