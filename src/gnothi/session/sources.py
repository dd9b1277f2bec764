"""From names to what speaks and what is out there: models, indexes, graphs, re-rankers, and what methods have learnt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnothi import config
from gnothi.config import Settings
from gnothi.errors import InvalidSetting
from gnothi.graph.registry import open_graph
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION
from gnothi.models import LAB, check_model, settings_class, settings_listed
from gnothi.models import load_model as open_model
from gnothi.retrieval.registry import open_index, open_reranker

if TYPE_CHECKING:
    from gnothi.models.settings import CallCache
    from gnothi.session.searches import SearchSettings

_SECRET = re.compile("key|token|secret|password", re.IGNORECASE)

__all__ = [
    "LAB",
    "check_model",
    "model_settings",
    "open_graph",
    "open_index",
    "open_learnt",
    "open_model",
    "open_reranker",
    "search_settings",
]


def model_settings(specs: Sequence[str], settings: Settings) -> dict[str, CallCache]:
    """What was given under ``model.``, by model: each takes what its kind has, and there is nothing that none of them has, but
    for what a file or the environment says for other kinds.

    Raises UnknownName or InvalidSetting."""
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
        if elsewhere := [where for where, kind in settings_listed().items() if key in config.settings_of(kind)]:
            if given[key].shared:
                continue
            raise InvalidSetting(
                f"setting 'model.{key}' is of models {' and '.join(elsewhere)}, got {', '.join(specs)}. "
                "`gnothi list models` lists what each kind takes."
            )
        config.check({key: given[key]}, union, MODEL_SECTION)
    return {
        spec: config.build(kind, {key: value for key, value in given.items() if key in known[kind]}, MODEL_SECTION)
        for spec, kind in kinds.items()
    }


def search_settings(settings: Settings) -> SearchSettings:
    """What was given under ``index.``: how every method's searches are made. Raises UnknownName or InvalidSetting."""
    from gnothi.session.searches import SearchSettings

    return config.build(SearchSettings, settings.section(INDEX_SECTION), INDEX_SECTION)


def open_learnt(protocol: type, spec: str) -> Any:
    """What a spec names for a method's field of that protocol, where that is no model, index, graph or re-ranker: a probe,
    say. Raises InvalidInput."""
    from gnothi.filtering.complexity import ComplexitySource, open_complexity
    from gnothi.filtering.knowledge import KnowledgeSource, open_knowledge
    from gnothi.filtering.learned import GateSource, open_gate
    from gnothi.filtering.reference import open_reference
    from gnothi.signals.entailment import Entailment, open_entailment
    from gnothi.signals.probe import Probe
    from gnothi.signals.probe_folder import open_probe

    openers: Mapping[type, Any] = {
        Probe: open_probe,
        Entailment: open_entailment,
        ComplexitySource: open_complexity,
        GateSource: open_gate,
        KnowledgeSource: open_knowledge,
    }
    return openers.get(protocol, open_reference)(spec)
