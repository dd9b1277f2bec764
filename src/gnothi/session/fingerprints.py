"""What the folders that work reads from hold, so that a model, an index or a probe that changed under its name is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.files import home_expanded
from gnothi.models import LAB
from gnothi.prompts.sets import SHIPPED
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.types import Demonstration
from gnothi.weights import digest

Named = tuple[type, Any]
"""The protocol of what is opened, and the name it is given by, or the object; None for nothing."""


def fingerprints(named: Mapping[str, Named]) -> dict[str, str]:
    """By ``fingerprints.KEY``, for the keys under which names are recorded. Left out where nothing but the name is known: a
    model behind an API, one that is not on this machine, a folder that is not there (told when it is opened), an object."""
    from gnothi.runs.journal import FINGERPRINTS

    found = {key: _content(protocol, spec) for key, (protocol, spec) in named.items() if spec and isinstance(spec, str)}
    return {f"{FINGERPRINTS}{key}": content for key, content in found.items() if content}


def _content(protocol: type, spec: str) -> str:
    from gnothi.graph.registry import graph_fingerprint
    from gnothi.models import identity
    from gnothi.retrieval.registry import index_fingerprint, reranker_fingerprint

    if spec == LAB and protocol is not LanguageModel:
        return ""  # comes with the package
    with suppress(IndexUnavailable, OSError):
        if protocol is Demonstration:
            return "" if spec in SHIPPED else digest([home_expanded(spec)])
        if protocol is Retriever:
            return index_fingerprint(spec)
        if protocol is KnowledgeGraph:
            return graph_fingerprint(spec)
        if protocol is LanguageModel:
            return identity.content(spec)
        if protocol is Reranker:
            return reranker_fingerprint(spec)
        return digest(Path(spec) / name for name in _read(protocol))
    return ""


def _read(protocol: type) -> tuple[str, ...]:
    """The files of a folder that results depend on; others may lie there, too."""
    from gnothi.filtering import complexity, knowledge, learned, reference
    from gnothi.filtering.likeness import Likeness
    from gnothi.filtering.utility import DemonstrationSource
    from gnothi.signals import entailment, probe, probe_folder

    files: dict[type, tuple[str, ...]] = {
        probe.Probe: (probe_folder.HEADER, probe_folder.WEIGHTS, probe_folder.WORDS),
        entailment.Entailment: ("config.json", "model.safetensors"),
        Likeness: ("config.json", "model.safetensors"),
        complexity.ComplexitySource: (complexity.FILE,),
        learned.GateSource: (learned.FILE,),
        knowledge.KnowledgeSource: (knowledge.FILE, knowledge.QUESTIONS),
        DemonstrationSource: (reference.HEADER, reference.LABELS),
    }
    return files[protocol]
