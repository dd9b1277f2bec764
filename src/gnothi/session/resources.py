"""From what a user names to what a method needs: models, indexes, methods with their settings, questions.

Names and settings are checked before anything heavy is opened, so that a typing error costs no time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from gnothi import config
from gnothi.config import Settings
from gnothi.errors import InvalidSetting
from gnothi.graph.registry import open_graph
from gnothi.lab import named
from gnothi.methods.given import INDEX_SECTION, MODEL_SECTION, method_settings, named_resources
from gnothi.models import check_model, load_model
from gnothi.protocols import KnowledgeGraph, LanguageModel, Method, Reranker, Retriever
from gnothi.retrieval.registry import open_index, open_reranker
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.filtering.complexity import ComplexityClassifier
    from gnothi.filtering.knowledge import KnowledgeReference
    from gnothi.filtering.reference import Reference
    from gnothi.models.settings import CallCache
    from gnothi.session.searches import SearchSettings
    from gnothi.signals.probe_folder import FittedProbe

LAB = named.NAME
LAB_QUESTIONS = named.COUNT
LAB_TRAINING = named.TRAINING_NAME
LAB_MODELS = (LAB, f"vllm:{LAB}")
SEARCHES = "searches."
_SECRET = re.compile("key|token|secret|password", re.IGNORECASE)


@dataclass(frozen=True)
class Resources:
    """What the methods of one command share. ``retriever`` is None where no index was named and none is the default, and
    ``graph`` likewise, or where nothing reads one; ``others`` are further models, indexes and the like by protocol and spec: a
    judge named with ``--set judge=SPEC``, say."""

    model: LanguageModel
    retriever: Retriever | None
    settings: Settings
    methods: tuple[str, ...]
    others: Mapping[tuple[type, str], Any] = field(default_factory=dict)
    graph: KnowledgeGraph | None = None

    def method(self, name: str, own: Settings | None = None) -> Method:
        """The method of that name with its settings, or with its ``own``. Raises UnknownName, InvalidSetting or
        MissingCapability."""
        from gnothi import methods

        own_given = method_settings([name], own)[name] if own else method_settings([*self.methods, name], self.settings)[name]
        named = named_resources(name, own_given)
        others = {key: self.others[wanted] for key, wanted in named.items()}
        plain = {key: value for key, value in own_given.items() if key not in methods.optional_resources(name)}
        shared = {"model": self.model, "retriever": self.retriever, "graph": self.graph}
        return methods.create(name, shared | others, plain)


@contextlib.asynccontextmanager
async def open_resources(
    model_spec: str,
    index_spec: str | None,
    settings: Settings,
    methods: Sequence[str],
    graph_spec: str | None = None,
    others: Sequence[tuple[str, Settings]] = (),
) -> AsyncIterator[Resources]:
    """Open model, index and graph for ``methods``, and close them at the end; names and settings are checked first.

    ``index_spec`` None is the lab's corpus for the lab model and no index for any other; ``graph_spec`` None likewise. Of a
    wrong model and a missing index, the model is told first. A graph is opened where one of the methods, or the expansion of
    queries, reads one. Further models, indexes and the like that the settings of the methods name are opened once each; the
    main ones named again are shared. ``others`` are methods with settings of their own, made by
    ``Resources.method(name, own)``, whose further models and the like are opened, too.
    """
    named = [*_named(methods, settings), *(wanted for name, own in others for wanted in _named([name], own))]
    every = [*methods, *(name for name, _ in others)]
    searches = search_settings(settings)
    built = model_settings(_models(model_spec, named), settings)
    default = LAB if model_spec in LAB_MODELS else None
    spec, graph_spec = index_spec or default, graph_spec or default
    check_model(model_spec, on_the_hub=False)
    if spec is None:
        check_no_retriever(every, model_spec)
    async with contextlib.AsyncExitStack() as stack:
        opened: dict[tuple[type, str], Any] = {}

        def keep(protocol: type, one: str, opening: Callable[[], Any]) -> Any:
            if (protocol, one) not in opened:
                opened[protocol, one] = found = opening()
                stack.push_async_callback(found.aclose)
            return opened[protocol, one]

        graph = None
        if graph_spec and (searches.expand != "none" or reads_graph(every)):
            graph = keep(KnowledgeGraph, graph_spec, partial(open_graph, graph_spec, searches.recogniser))
        index = open_index(spec) if spec else None
        if index is not None:
            stack.push_async_callback(index.aclose)
        model = keep(LanguageModel, model_spec, partial(open_model, model_spec, built[model_spec]))
        reranker = searches.reranker and keep(Reranker, searches.reranker, partial(open_reranker, searches.reranker))
        retriever = index and searches.wrap(index, model, graph, reranker or None)
        if spec:
            opened[Retriever, spec] = retriever
        for protocol, other in named:
            keep(protocol, other, partial(open_other, protocol, other, built, searches.recogniser))
        yield Resources(model, retriever, settings, tuple(methods), opened, graph)


@contextlib.asynccontextmanager
async def open_methods(
    model_spec: str, index_spec: str | None, settings: Settings, methods: Sequence[str], graph_spec: str | None = None
) -> AsyncIterator[Mapping[str, Method]]:
    """The methods by name, over resources of their own as ``open_resources`` opens them."""
    async with open_resources(model_spec, index_spec, settings, methods, graph_spec) as resources:
        yield {name: resources.method(name) for name in methods}


def reads_graph(names: Sequence[str]) -> bool:
    """Whether one of the methods has a place for a graph."""
    from gnothi import methods

    return any("graph" in methods.resources_of(name) for name in names)


def open_other(
    protocol: type, spec: str, built: Mapping[str, CallCache], recogniser: str | None = None
) -> (
    LanguageModel | Retriever | KnowledgeGraph | Reranker | Reference | KnowledgeReference | ComplexityClassifier | FittedProbe
):
    """What a spec names, for a method's field of that protocol; ``built`` are the settings of models, by spec."""
    if protocol is LanguageModel:
        return open_model(spec, built[spec])
    if protocol is Retriever:
        return open_index(spec)
    if protocol is KnowledgeGraph:
        return open_graph(spec, recogniser)
    if protocol is Reranker:
        return open_reranker(spec)
    from gnothi.filtering.complexity import ComplexitySource, open_complexity
    from gnothi.filtering.knowledge import KnowledgeSource, open_knowledge
    from gnothi.filtering.reference import open_reference
    from gnothi.signals.probe import Probe
    from gnothi.signals.probe_folder import open_probe

    if protocol is Probe:
        return open_probe(spec)
    if protocol is ComplexitySource:
        return open_complexity(spec)
    return open_knowledge(spec) if protocol is KnowledgeSource else open_reference(spec)


def open_model(spec: str, settings: CallCache) -> LanguageModel:
    """The model of a spec, its calls seeded and traced. Raises ModelUnavailable, MissingDependency or InvalidSetting."""
    return load_model(spec, settings)


def model_specs(model_spec: str, methods: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Every model that a command opens: the main one, and those that settings of the methods name. Raises as
    ``method_settings``."""
    return _models(model_spec, _named(methods, settings))


def _models(model_spec: str, named: Sequence[tuple[type, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([model_spec, *(spec for protocol, spec in named if protocol is LanguageModel)]))


def model_settings(specs: Sequence[str], settings: Settings) -> dict[str, CallCache]:
    """What was given under ``model.``, by model: each takes what its kind has, and there is nothing that none of them has.

    Raises UnknownName or InvalidSetting."""
    from gnothi.models import settings_class

    given = settings.section(MODEL_SECTION)
    kinds = {spec: settings_class(spec) for spec in specs}
    known = {kind: config.settings_of(kind) for kind in kinds.values()}
    union = {key: setting for one in known.values() for key, setting in one.items()}
    for key in given.keys() - union.keys():
        if _SECRET.search(key):  # the usual message would show it
            raise InvalidSetting(
                f"setting 'model.{key}': there is none of that name, and no setting takes a secret, since runs record them. "
                "A key for an API is taken from the environment variable OPENAI_API_KEY."
            )
        config.check({key: given[key]}, union, MODEL_SECTION)
    return {
        spec: config.build(kind, {key: value for key, value in given.items() if key in known[kind]}, MODEL_SECTION)
        for spec, kind in kinds.items()
    }


def recorded_settings(specs: Sequence[str], settings: Settings) -> dict[str, Any]:
    """What a run records of the settings of models and searches: those given, and where models behind an API are asked.
    Settings that results do not depend on stand under ``execution.``. Raises as ``model_settings`` and ``search_settings``."""
    from gnothi.models import RemoteSettings
    from gnothi.runs.journal import EXECUTION

    built = model_settings(specs, settings).values()
    free = {item.name for one in built for item in fields(one) if item.metadata.get("execution")}
    recorded = {
        f"{EXECUTION if key in free else ''}{MODEL_SECTION}.settings.{key}": given.value
        for key, given in settings.section(MODEL_SECTION).items()
    }
    for one in built:
        if isinstance(one, RemoteSettings):
            recorded[f"{MODEL_SECTION}.settings.base_url"] = one.located().base_url
    if searching := settings.section(INDEX_SECTION):
        values = config.resolved(search_settings(settings))
        # "index" itself is the index's name.
        recorded |= {f"{SEARCHES}{key}": values[key] for key in searching}
    return recorded


def search_settings(settings: Settings) -> SearchSettings:
    """What was given under ``index.``: how every method's searches are made. Raises UnknownName or InvalidSetting."""
    from gnothi.session.searches import SearchSettings

    return config.build(SearchSettings, settings.section(INDEX_SECTION), INDEX_SECTION)


def load_questions(spec: str, format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` questions of a data set or file. Raises UnknownName or InvalidInput."""
    from gnothi import datasets

    return datasets.load(spec, format, limit)


def _named(methods: Sequence[str], settings: Settings) -> list[tuple[type, str]]:
    """Protocol and spec of all further models and indexes that the settings of the methods name."""
    chosen = method_settings(methods, settings)
    return [wanted for name, given in chosen.items() for wanted in named_resources(name, given).values()]


def check_no_retriever(names: Sequence[str], model_spec: str) -> None:
    """Raises InvalidSetting for the first method that cannot do without a retriever; where there is no such model either, that
    is told first (ModelUnavailable)."""
    from gnothi import methods

    for name in names:
        if "retriever" in methods.required_resources(name):
            check_model(model_spec)
            raise InvalidSetting(
                f"method {name!r} looks for evidence and got no index: give --index PATH (built with `gnothi index build`)."
            )
