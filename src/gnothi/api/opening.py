"""``gnothi.load_model``, ``gnothi.open_index`` and what fills an index."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gnothi.api.given import settings_of
from gnothi.models import model_settings
from gnothi.session import sources

if TYPE_CHECKING:
    from gnothi.protocols import KnowledgeGraph, LanguageModel, Retriever


def load_model(spec: str | os.PathLike[str], **settings: Any) -> LanguageModel:
    """The model of a name: ``lab``, a folder, a hub id, ``vllm:...`` or ``openai:...``. ``settings`` as for
    ``--set model.KEY``.

    Raises UnknownName or InvalidSetting for settings, ModelUnavailable, MissingDependency."""
    name = os.fspath(spec)
    return sources.open_model(name, model_settings([name], settings_of({"model_settings": settings}).section("model"))[name])


def open_index(spec: str | os.PathLike[str]) -> Retriever:
    """The index (or graph) in a folder, or ``lab``. Raises IndexUnavailable."""
    return sources.open_index(os.fspath(spec))


def open_graph(spec: str | os.PathLike[str]) -> KnowledgeGraph:
    """The knowledge graph in a folder, or ``lab``. Raises IndexUnavailable."""
    return sources.open_graph(os.fspath(spec))


def build_index(documents: str | os.PathLike[str] | Sequence[Any], out: str | os.PathLike[str], **settings: Any) -> Any:
    """Index files and folders into the folder ``out``, or add to it; ``settings`` and what it returns as
    ``gnothi.retrieval.build.build``."""
    from gnothi.retrieval.build import build

    return build([documents] if isinstance(documents, str | os.PathLike) else documents, out, **settings)


def build_graph(triples: str | os.PathLike[str] | Sequence[Any], out: str | os.PathLike[str], **settings: Any) -> Any:
    """Read triples into a knowledge graph in the folder ``out``; ``settings`` and what it returns as
    ``gnothi.graph.building.build_graph``."""
    from gnothi.graph.building import build_graph as build

    return build([triples] if isinstance(triples, str | os.PathLike) else triples, out, **settings)
