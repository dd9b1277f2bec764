"""Set-ups that are open, and what can be asked of them. Nothing here knows HTTP: routes, tools and pages call it alike."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gnothi.errors import InvalidSetting, UnknownName
from gnothi.events import Event, Listener, UnknownKeys, listen, record
from gnothi.methods.planned import name_of
from gnothi.models import RemoteSettings
from gnothi.models.remote.budget import Budget, Prices, spending
from gnothi.protocols import LanguageModel, Method
from gnothi.retrieval.filtering import filtered, unknown_keys
from gnothi.retrieval.filters import Filters
from gnothi.runs.runner import CONCURRENCY
from gnothi.seeding import question_scope
from gnothi.serving import helper
from gnothi.serving.attached import Attached
from gnothi.serving.handed import Handed, passages, unread
from gnothi.serving.standalone import Turn, standalone
from gnothi.session import sources as specs
from gnothi.session.asking import Result, ask_method
from gnothi.session.knowledge import Knowledge, know, uncalibrated
from gnothi.session.plan import Plan
from gnothi.session.resources import Opened, opened, under_way
from gnothi.types import Question, ScoredPassage

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
    """``asked`` is the question as it came, ``result.question`` the one that was answered: within a conversation, that one
    stands alone. ``warnings`` are of this answer; ``cites`` says, by a passage's id, what it is to be called in it."""

    id: str
    setup: SetUp
    asked: str
    result: Result
    warnings: tuple[str, ...] = ()
    attached: int = 0
    cites: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
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

    def end(self, done: Done) -> None: ...


class Service:
    """``observers`` hear of every question at its end; ``watching`` are called when one begins, with kind, set-up and text, and
    give a watcher of it. ``started`` is in seconds since the epoch."""

    def __init__(self, setups: Mapping[str, SetUp], follow_ups: str = "rewrite") -> None:
        self.setups = dict(setups)
        self.follow_ups = follow_ups
        self.observers: list[Callable[[Done], object]] = []
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
        told = (under_way(one.opened.model) for one in self.setups.values())
        return min((one for one in told if one), default=CONCURRENCY)

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
        given = passages(attached)
        opened = setup.opened.narrowed(filters)
        if given:
            opened = replace(opened, retriever=Handed(tuple(given), opened.retriever))
        method = opened.method(setup.plan.methods[0]) if given or filters else setup.method

        async def work() -> Answered:
            asked, warnings = question, tuple[str, ...]()
            before: list[Event] = []
            if history and self.follow_ups == "rewrite":
                with record() as before:
                    asked, warnings = await standalone(setup.opened.model, question, history)
            result = await ask_method(setup.plan, opened, method, Question(QUESTION_ID, asked))
            result = replace(result, events=(*before, *result.events))
            if given:
                warnings = (*warnings, *unread(tuple(given), result.searches, method))
            warnings = (
                *warnings,
                *dict.fromkeys(
                    f"Filter: {unknown_keys(one.lacking, one.known)}." for one in result.events if isinstance(one, UnknownKeys)
                ),
            )
            cites = {passage.id: one.cite for passage, one in given.items() if one.cite}
            return Answered(uuid.uuid4().hex, setup, question, result, warnings, len(attached), cites)

        return await self._heard("ask", setup, question, work, listeners)

    async def help(self, setup: SetUp, text: str, *, listeners: Sequence[Listener] = ()) -> Answered:
        """What the model says to a prompt of a chat's front end: no gate, no search."""

        async def work() -> Answered:
            result = await helper.reply(setup.opened, setup.plan, Question(QUESTION_ID, text))
            return Answered(uuid.uuid4().hex, setup, text, result)

        return await self._heard("helper", setup, text, work, listeners)

    async def know(self, setup: SetUp, question: str, *, listeners: Sequence[Listener] = ()) -> Knowledge:
        """Whether the model knows this; nothing is searched. Raises InvalidSetting for a method without a gate."""
        return await self._heard(
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
        return await self._heard("search", setup, query, lambda: among.search(query, k), listeners)

    async def _heard(
        self, kind: str, setup: SetUp, text: str, work: Callable[[], Awaitable[T]], listeners: Sequence[Listener]
    ) -> T:
        seen: list[Event] = []
        watchers = [begin(kind, setup, text) for begin in self.watching]
        started = time.perf_counter()
        answered: Answered | None = None
        failure: BaseException | None = None
        try:
            with ExitStack() as stack:
                everyone: tuple[Listener, ...] = (seen.append, *watchers, *listeners)
                for listener in everyone:
                    stack.enter_context(listen(listener))
                stack.enter_context(question_scope(setup.plan.execution.seed, QUESTION_ID))
                found = await work()
            if isinstance(found, Answered):
                answered = found
            return found
        except BaseException as error:
            failure = error
            raise
        finally:
            done = Done(kind, setup, time.perf_counter() - started, tuple(seen), answered, failure)
            for hear in (*self.observers, *(watcher.end for watcher in watchers)):
                try:
                    hear(done)
                except Exception as error:  # noqa: BLE001 - an answer is not lost because somebody could not note it
                    LOG.error("an observer failed: %s", type(error).__name__)


@asynccontextmanager
async def open_service(
    plans: Mapping[str, Plan], follow_ups: str = "rewrite", have: Mapping[Any, Any] | None = None
) -> AsyncIterator[Service]:
    """Open what all plans name, each model once, and close it at the end; what the caller ``has`` is used and left open.

    Raises what opening raises, InvalidSetting and MissingCapability."""
    first = next(iter(plans.values()))
    async with AsyncExitStack() as stack:
        stack.enter_context(spending(Budget(first.max_cost, first.max_tokens)))
        models: list[tuple[str, Any, LanguageModel]] = []
        sets: list[tuple[Plan, Opened]] = []
        setups: dict[str, SetUp] = {}
        for name, plan in plans.items():
            found = next((one for other, one in sets if _alike(plan, other)), None)
            if found is None:
                together = [other for other in plans.values() if _alike(plan, other)]
                shared = dict(have or {})
                for spec, settings in {spec: one for other in together for spec, one in other.models.items()}.items():
                    if (LanguageModel, spec) not in shared:
                        shared[LanguageModel, spec] = _shared(models, stack, spec, settings)
                found = await stack.enter_async_context(opened(together, shared))
                sets.append((plan, found))
            doubt = uncalibrated(plan, found)
            setups[name] = SetUp(
                name, plan, found, found.method(plan.methods[0]), (*plan.warnings, *([doubt] if doubt else ()))
            )
        yield Service(setups, follow_ups)


def _alike(one: Plan, other: Plan) -> bool:
    """Whether they open the same: sources, and models with the same settings."""
    common = one.models.keys() & other.models.keys()
    return one.sources == other.sources and all(one.models[spec] == other.models[spec] for spec in common)


def _shared(models: list[tuple[str, Any, LanguageModel]], stack: AsyncExitStack, spec: str, settings: Any) -> LanguageModel:
    for name, given, model in models:
        if (name, given) == (spec, settings):
            return model
    model = specs.open_model(spec, settings)
    stack.push_async_callback(model.aclose)
    models.append((spec, settings, model))
    return model
