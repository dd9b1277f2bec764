"""What a plan names, opened: each model, index and the like once, closed at the end."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gnothi import methods
from gnothi.errors import InvalidSetting, UsageError
from gnothi.methods.planned import PlannedMethod, name_of
from gnothi.protocols import KnowledgeGraph, LanguageModel, Method, Reranker, Retriever
from gnothi.retrieval.filtering import check_keys, filtered
from gnothi.retrieval.filters import Filters
from gnothi.session import sources as specs
from gnothi.session.plan import Plan

if TYPE_CHECKING:
    from gnothi.models.settings import CallCache

Key = tuple[type, str]
"""The protocol of what was opened, and its name."""


@dataclass(frozen=True)
class Opened:
    """What methods share. ``retriever`` is None where no index was named and none is the default, and ``graph`` likewise, or
    where nothing reads one; ``others`` are further models, indexes and the like: a judge, say."""

    model: LanguageModel
    retriever: Retriever | None
    graph: KnowledgeGraph | None = None
    others: Mapping[Key, Any] = field(default_factory=dict)

    def method(self, planned: PlannedMethod) -> Method:
        """Ready to answer. Raises InvalidSetting or MissingCapability."""
        further = {
            key: self.others[protocol, given] if isinstance(given, str) else given
            for key, (protocol, given) in planned.named.items()
        }
        resources = {"model": self.model, "retriever": self.retriever, "graph": self.graph} | further
        values = {key: value for key, value in planned.values.items() if key not in planned.spec.optional}
        try:
            return methods.make(planned.name, resources, values)
        except UsageError as error:
            if not planned.variant:
                raise
            raise InvalidSetting(
                f"variant {planned.variant!r}: {error.message} Or name the variants that can be run with <--only LABEL>."
            ) from None

    def narrowed(self, filters: Filters) -> Opened:
        """Searching among the passages alone that pass all filters. Raises InvalidSetting where there is no index, or one that
        cannot filter."""
        if not filters:
            return self
        if self.retriever is None:
            raise InvalidSetting(f"filter {str(filters[0])!r:.80}: there is no index to filter. Give <--index PATH>.")
        others = {
            key: filtered(one, filters) if key[0] is Retriever and one is not None else one for key, one in self.others.items()
        }
        return replace(self, retriever=filtered(self.retriever, filters), others=others)

    def counted(self, what: str) -> int:
        """The sum of what the models count themselves under that name (their ``statistics``); 0 where they do not."""
        return sum(getattr(one, "statistics", {}).get(what, 0) for one in {id(one): one for one in self.models}.values())

    @property
    def models(self) -> list[LanguageModel]:
        return [self.model, *(one for (protocol, _), one in self.others.items() if protocol is LanguageModel)]


class Methods(dict[str, Method]):
    """Those of plans of equal sources, by ``label``, over what is ``opened``. ``under_way``: how many questions their models
    gain from at a time, ``precision``: in which the main model computes; None where these do not say. ``date``: what prompts
    take for today, where one of their templates tells it."""

    opened: Opened
    under_way: int | None
    precision: str | None
    date: str


@contextlib.asynccontextmanager
async def opened(plans: Sequence[Plan], have: Mapping[Key, Any] | None = None) -> AsyncIterator[Opened]:
    """Open what plans of equal sources name, and close it at the end. The main ones named again are shared; what the caller
    ``has`` already, or gave as an object, is used and left open. Raises what opening raises."""
    sources = plans[0].sources
    models = {spec: settings for plan in plans for spec, settings in plan.models.items()}
    async with contextlib.AsyncExitStack() as stack:
        found: dict[Key, Any] = dict(have or {})

        def keep(protocol: type, named: Any, opening: Callable[[str], Any]) -> Any:
            if not isinstance(named, str):
                return filtered(named, sources.searches.narrowing) if protocol is Retriever else named
            if (protocol, named) not in found:
                found[protocol, named] = one = opening(named)
                stack.push_async_callback(one.aclose)
            return found[protocol, named]

        def further(spec: str) -> Retriever:
            """Another index: what the filters keep out is not found there either."""
            one = specs.open_index(spec)
            if not searches.narrowing:
                return one
            stack.push_async_callback(one.aclose)
            return filtered(one, searches.narrowing)

        searches, filters = sources.searches, sources.searches.narrowing
        with _interruptible():
            graph = sources.graph and keep(KnowledgeGraph, sources.graph, specs.open_graph)
            index = sources.index
            if isinstance(index, str):
                index = specs.open_index(index, searches.dense_weight)
                stack.push_async_callback(index.aclose)
            elif index is not None:
                index = _traced(index)
            if filters and index is None:
                raise InvalidSetting(f"filter {str(filters[0])!r:.80}: there is no index to filter. Give <--index PATH>.")
            if filters:
                await check_keys(index, filters)
                index = filtered(index, filters)
            model = _heard(keep(LanguageModel, sources.model, partial(_open_model, models)), sources.model)
            reranker = searches.reranker and keep(Reranker, searches.reranker, specs.open_reranker)
            retriever = index and searches.wrap(index, reranker or None)
            if sources.index is not None:
                found[Retriever, name_of(sources.index)] = retriever
            openers: dict[type, Callable[[str], Any]] = {
                LanguageModel: partial(_open_model, models),
                KnowledgeGraph: specs.open_graph,
                Retriever: further,
                Reranker: specs.open_reranker,
            }
            for protocol, named in (one for plan in plans for method in plan.methods for one in method.named.values()):
                keep(protocol, named, openers.get(protocol) or partial(specs.open_learnt, protocol))
        yield Opened(model, retriever, graph, found)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends what is opened inside at once. In a running event loop it would be heard at the next await alone: after a
    model was loaded, which may take minutes."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _open_model(settings: Mapping[str, CallCache], spec: str) -> LanguageModel:
    return specs.open_model(spec, settings[spec])


def _traced(index: Retriever) -> Retriever:
    """Searches of an object of the caller's are told like any other."""
    from gnothi.retrieval.wrappers import Traced

    return index if isinstance(index, Traced) else Traced(index)


def _heard(model: LanguageModel, given: Any) -> LanguageModel:
    """Calls of an object of the caller's are seeded and told like any other's."""
    from gnothi.models.wrappers import Seeded, Traced

    return model if isinstance(given, str) or isinstance(model, Traced) else Traced(Seeded(model))


@contextlib.asynccontextmanager
async def opened_methods(plans: Sequence[Plan], have: Mapping[Key, Any] | None = None) -> AsyncIterator[Methods]:
    """The methods of plans of equal sources, ready to answer. Raises as ``opened`` and ``Opened.method``."""
    async with opened(plans, have) as found:
        made = Methods((label(place, one.name), found.method(one)) for place, plan in enumerate(plans) for one in plan.methods)
        limits = map(under_way, (found.model, *found.others.values()))
        made.opened, made.precision = found, found.model.profile.precision
        made.under_way = min((one for one in limits if one), default=None)
        made.date = next((one.profile.date for one in found.models if one.profile.date), "")
        yield made


def under_way(model: object) -> int | None:
    """How many questions a model gains from at a time, if it says."""
    counted = getattr(model, "statistics", None)
    return counted.get("under_way") if isinstance(counted, Mapping) else None


def label(place: int, method: str) -> str:
    """Names a method of the plan in that place."""
    return f"{place}/{method}"
