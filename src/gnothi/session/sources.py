"""From names to what speaks and what is out there: models, indexes, graphs, re-rankers, and what methods have learnt."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnothi import config
from gnothi.config import Settings
from gnothi.errors import InvalidSetting
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever

if TYPE_CHECKING:
    from gnothi.models.settings import CallCache
    from gnothi.session.searches import SearchSettings

LAB = "lab"
LAB_MODELS = (LAB, f"vllm:{LAB}")
_SECRET = re.compile("key|token|secret|password", re.IGNORECASE)

MODEL_SPECS = {
    LAB: "the laboratory's small model, which comes with the package and knows part of an invented world",
    "PATH": "a folder with a model in transformers format",
    "HUB-ID": "a causal language model of the Hugging Face hub, as in Qwen/Qwen3-1.7B",
    "vllm:MODEL": "any of these under vLLM (extra vllm), for large models on a GPU",
    "openai:NAME": "a model behind an OpenAI-compatible API: OpenAI, vLLM, llama.cpp, Ollama (docs/remote-models.md)",
}


# --- settings ------------------------------------------------------------------------------------------------------------


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


def search_settings(settings: Settings) -> SearchSettings:
    """What was given under ``index.``: how every method's searches are made. Raises UnknownName or InvalidSetting."""
    from gnothi.session.searches import SearchSettings

    return config.build(SearchSettings, settings.section(INDEX_SECTION), INDEX_SECTION)


# --- opening -------------------------------------------------------------------------------------------------------------


def check_model(spec: str, on_the_hub: bool = True) -> None:
    """Raise ModelUnavailable where there is no such model, without loading it. To look ``on_the_hub`` takes a moment, and
    loading does it anyway. A model behind an API answers for itself."""
    from gnothi import models
    from gnothi.models.engine.loading import locate, names_a_path

    source = spec.removeprefix(models.VLLM)
    if models.is_remote(spec) or source == LAB or not source.strip():
        return
    if on_the_hub or names_a_path(source):
        locate(source, spec)


def open_model(spec: str, settings: CallCache | None = None) -> LanguageModel:
    """The model of a spec, its calls seeded and traced. Raises ModelUnavailable, MissingDependency or InvalidSetting."""
    from gnothi import models

    return models.load_model(spec, settings)


def open_index(spec: str | os.PathLike[str]) -> Retriever:
    """The retriever of a spec, its searches traced, and where it is a graph also what is linked and looked up in it. Raises
    IndexUnavailable."""
    from gnothi.graph.folder import is_graph
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.wrappers import Traced

    if spec == LAB:
        from gnothi import lab

        return Traced(BM25Index.in_memory(lab.passages(), LAB))
    if is_graph(spec):
        from gnothi.graph.retriever import GraphRetriever

        return Traced(GraphRetriever(open_graph(str(spec))))
    return Traced(BM25Index.open(spec))


def open_graph(spec: str, recogniser: str | None = None) -> KnowledgeGraph:
    """The knowledge graph of a spec, traced. ``recogniser`` (``spacy:NAME``, ``gliner:NAME``) names what finds the places of
    names in a text; None: the graph's own names do. Raises IndexUnavailable, and for a recogniser MissingDependency,
    ModelUnavailable or UnknownName."""
    from gnothi.retrieval.wrappers import TracedGraph

    if spec == LAB:
        from gnothi.lab.graph import graph

        plain = graph()
    else:
        from gnothi.graph.folder import open_folder

        plain = open_folder(spec)
    if recogniser is None:
        return TracedGraph(plain)
    from gnothi.graph.recognisers import RecognisedGraph, open_recogniser

    return TracedGraph(RecognisedGraph(plain, open_recogniser(recogniser)))


def open_reranker(spec: str) -> Reranker:
    """The re-ranker of a spec, traced. Raises ModelUnavailable or MissingDependency."""
    from gnothi.retrieval import rerank

    return rerank.open_reranker(spec)


def open_learnt(protocol: type, spec: str) -> Any:
    """What a spec names for a method's field of that protocol, where that is no model, index, graph or re-ranker: a probe,
    say. Raises InvalidInput."""
    from gnothi.filtering.complexity import ComplexitySource, open_complexity
    from gnothi.filtering.knowledge import KnowledgeSource, open_knowledge
    from gnothi.filtering.reference import open_reference
    from gnothi.signals.probe import Probe
    from gnothi.signals.probe_folder import open_probe

    openers: Mapping[type, Any] = {Probe: open_probe, ComplexitySource: open_complexity, KnowledgeSource: open_knowledge}
    return openers.get(protocol, open_reference)(spec)
