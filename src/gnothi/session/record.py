"""What a run records of its plan, by dotted key: everything that rows depend on, and how they were made.

The same keys are compared when the run goes on, and read when it is repeated (``as_settings``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from gnothi import config
from gnothi.config import Settings
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, name_of
from gnothi.methods.registry import METHODS
from gnothi.models import RemoteSettings
from gnothi.models.settings import CallCache
from gnothi.own_code import digest, target_of
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.registry import BUILT_IN, GIVEN, Own
from gnothi.runs.journal import EXECUTION, FINGERPRINTS, OBJECTS
from gnothi.session.fingerprints import Named, fingerprints
from gnothi.session.plan import Plan, QuestionSet
from gnothi.session.searches import SearchSettings
from gnothi.signals.registry import SIGNALS
from gnothi.types import Demonstration
from gnothi.version import __version__

SEARCHES = "searches."
_METHOD, _MODEL = "method.", f"{MODEL_SECTION}.settings."
_REPEATED = {
    "dataset": "dataset.name",
    "limit": "dataset.limit",
    "format": "dataset.format",
    "model": "model.name",
    "index": "index",
    "graph": "graph",
    "seed": "seed",
}
"""What a run can be repeated with beside settings, and where its record holds it. How it was carried out is not repeated."""


def record(plan: Plan, fields: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """What the rows of the plan depend on; under ``execution.``, with what else is ``told``, what they do not."""
    sources, execution = plan.sources, plan.execution
    named: dict[str, Named] = {"index": (Retriever, sources.index), "graph": (KnowledgeGraph, sources.graph)}
    return {
        **of_questions(plan.questions),
        "seed": execution.seed,
        "methods": [method.name for method in plan.methods],
        **of_sources(plan, named),
        **plan.resolved,
        f"{EXECUTION}gnothi": __version__,
        **({f"{EXECUTION}plugins": plugins} if (plugins := _plugins(plan)) else {}),
        f"{EXECUTION}concurrency": execution.concurrency or "auto",
        f"{EXECUTION}workers": execution.workers,
        f"{EXECUTION}max_failures": execution.max_failures,
        **({f"{EXECUTION}on": execution.on, f"{EXECUTION}gpus": execution.gpus} if execution.on else {}),
        **{f"{EXECUTION}{key}": value for key, value in fields.items()},
    }


def _plugins(plan: Plan) -> list[str]:
    """The other packages, with versions, whose methods and signals take part."""
    named = {str(value) for method in plan.methods for value in method.values.values()}
    entries = [
        *(METHODS.entry(method.name) for method in plan.methods),
        *(SIGNALS.entry(one) for one in named if one in SIGNALS),
    ]
    return sorted({entry.origin for entry in entries} - {BUILT_IN, GIVEN})


def of_questions(asked: QuestionSet) -> dict[str, Any]:
    return {
        "dataset.name": asked.dataset,
        "dataset.format": asked.format,
        "dataset.limit": asked.limit,
        "dataset.questions": len(asked.questions),
        "dataset.fingerprint": asked.fingerprint,
    }


def of_sources(plan: Plan, named: Mapping[str, Named]) -> dict[str, Any]:
    """The model and what is ``named`` beside it, by the key it is recorded under; their settings; what they hold."""
    every: dict[str, Named] = {"model.name": (LanguageModel, plan.sources.model), **named}
    further: dict[str, Named] = {f"{SEARCHES}reranker": (Reranker, plan.sources.searches.reranker)}
    further |= {f"{_METHOD}{one.name}.{key}": wanted for one in plan.methods for key, wanted in one.named.items()}
    if (shown := plan.settings.section(MODEL_SECTION).get("demonstrations")) is not None:
        further[f"{_MODEL}demonstrations"] = (Demonstration, str(shown.value))
    return {
        **{key: None if source is None else name_of(source) for key, (_, source) in every.items()},
        **_objects(plan, every | further),
        **of_settings(plan.models, plan.settings, plan.sources.searches),
        **fingerprints(every | further),
    }


def of_settings(models: Mapping[str, CallCache], settings: Settings, searches: SearchSettings) -> dict[str, Any]:
    """What was given for models and searches, and where models behind an API are asked. Settings that results do not depend on
    stand under ``execution.``."""
    built = models.values()
    free = {item.name for one in built for item in fields(one) if item.metadata.get("execution")}
    recorded = {
        f"{EXECUTION if key in free else ''}{_MODEL}{key}": given.value
        for key, given in settings.section(MODEL_SECTION).items()
    }
    for one in built:
        if isinstance(one, RemoteSettings):
            recorded[f"{_MODEL}base_url"] = one.located().base_url
    if searching := settings.section(INDEX_SECTION):
        values = config.resolved(searches)
        # "index" itself is the index's name.
        recorded |= {f"{SEARCHES}{key}": values[key] for key in searching}
    return recorded


def _objects(plan: Plan, named: Mapping[str, Named]) -> dict[str, str]:
    """Where the code stands of what was given as an object or a function, and a fingerprint of it: a run with one does not go
    on with what merely bears its name, nor where the code has changed."""
    objects = {key: source for key, (_, source) in named.items() if source is not None and not isinstance(source, str)}
    for method in plan.methods:
        given = {f"methods.{method.name}": method.name}
        given |= {f"{_METHOD}{method.name}.{key}": value for key, value in method.values.items()}
        objects |= {key: one.thing for key, one in given.items() if isinstance(one, Own)}
    found = {f"{OBJECTS}{key}": target_of(one) for key, one in objects.items()}
    digests = {f"{FINGERPRINTS}{OBJECTS}{key}": digest(one) for key, one in objects.items()}
    return found | {key: one for key, one in digests.items() if one}


# --- a run repeated --------------------------------------------------------------------------------------------------------


def is_run(values: Mapping[str, Any]) -> bool:
    """Whether these dotted keys are what ``record`` made of a run."""
    return "dataset.fingerprint" in values and "methods" in values


def as_settings(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """A run's settings of methods, models and searches under the names they are given by; None for a file that is no run's."""
    if not is_run(values):
        return None
    found: dict[str, Any] = {}
    for key, value in values.items():
        key = key.removeprefix(EXECUTION)
        if key.startswith(_METHOD):
            found[key.removeprefix(_METHOD)] = values.get(f"{OBJECTS}{key}", value)
        elif key.startswith(_MODEL):
            found[f"{MODEL_SECTION}.{key.removeprefix(_MODEL)}"] = value
        elif key.startswith(SEARCHES):
            found[f"{INDEX_SECTION}.{key.removeprefix(SEARCHES)}"] = value
    return found


def as_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a run says of data set, model, index, graph, seed and methods; empty for what is no run."""
    if not is_run(values):
        return {}
    found = {name: values[key] for name, key in _REPEATED.items() if values.get(key, "none") != "none"}
    methods = [values.get(f"{OBJECTS}methods.{name}", name) for name in values["methods"]]
    return found | {"methods": methods} | ({"method": methods[0]} if len(methods) == 1 else {})


def changed_since(before: Mapping[str, Any], about: Mapping[str, Any], source: str) -> list[str]:
    """Warnings where a run is repeated that had other questions, or another model or index, under the same name; ``about`` is
    the new run's record."""
    from gnothi.runs.journal import resource

    if not is_run(before):
        return []
    same_limit = before.get("dataset.limit") == (about["dataset.limit"] or "none")
    fields = {"dataset.fingerprint": ("data set", "dataset.name")} if same_limit else {}
    fields |= {key: (resource(key), key.removeprefix(FINGERPRINTS)) for key in sorted(before) if key.startswith(FINGERPRINTS)}
    return [
        f"the {what} {about[named]} is not what it was for {source}: its content has changed."
        for key, (what, named) in fields.items()
        if before.get(named) == about.get(named) and key in about and before[key] != about[key]
    ]
