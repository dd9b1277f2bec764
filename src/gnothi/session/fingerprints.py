"""What the folders that work reads from hold, so that a model, an index or a probe that changed under its name is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.session.sources import LAB

Named = tuple[type, Any]
"""The protocol of what is opened, and the name it is given by, or the object; None for nothing."""


def fingerprints(named: Mapping[str, Named]) -> dict[str, str]:
    """By ``fingerprints.KEY``, for the keys under which names are recorded. Left out where nothing but the name is known: a
    model behind an API, one that is not on this machine, a folder that is not there (told when it is opened), an object."""
    from gnothi.runs.journal import FINGERPRINTS

    found = {key: _content(protocol, spec) for key, (protocol, spec) in named.items() if spec and isinstance(spec, str)}
    return {f"{FINGERPRINTS}{key}": content for key, content in found.items() if content}


def _content(protocol: type, spec: str) -> str:
    from gnothi.models import identity

    if spec == LAB and protocol is not LanguageModel:
        return ""  # comes with the package
    with suppress(IndexUnavailable, OSError):
        if protocol in (Retriever, KnowledgeGraph):
            return of_index(Path(spec))
        if protocol in (LanguageModel, Reranker):
            return identity.content(spec)
        return identity.digest(Path(spec) / name for name in _read(protocol))
    return ""


def of_index(folder: Path) -> str:
    """What changes when an index or graph is built anew from other content; empty where it does not say."""
    from gnothi.graph import folder as graphs
    from gnothi.retrieval.folder import read_manifest

    return graphs.fingerprint(folder) if graphs.is_graph(folder) else read_manifest(folder).content


def _read(protocol: type) -> tuple[str, ...]:
    """The files of a folder that results depend on; others may lie there, too."""
    from gnothi.filtering import complexity, knowledge, reference
    from gnothi.filtering.demonstrations import DemonstrationSource
    from gnothi.signals import probe, probe_folder

    files: dict[type, tuple[str, ...]] = {
        probe.Probe: (probe_folder.HEADER, probe_folder.WEIGHTS, probe_folder.WORDS),
        complexity.ComplexitySource: (complexity.FILE,),
        knowledge.KnowledgeSource: (knowledge.HEADER, knowledge.QUESTIONS),
        DemonstrationSource: (reference.HEADER, reference.LABELS),
    }
    return files[protocol]
