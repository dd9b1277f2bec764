"""From names to what speaks and what is out there: models, indexes, graphs, re-rankers, and what methods have learnt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.graph.registry import open_graph
from gnothi.models import load_model as open_model
from gnothi.retrieval.registry import open_index, open_reranker

__all__ = ["open_graph", "open_index", "open_learnt", "open_model", "open_reranker"]


def open_learnt(protocol: type, spec: str) -> Any:
    """What a spec names for a method's field of that protocol, where that is no model, index, graph or re-ranker: a probe,
    say. Raises InvalidInput."""
    from gnothi.filtering.complexity import ComplexitySource, open_complexity
    from gnothi.filtering.knowledge import KnowledgeSource, open_knowledge
    from gnothi.filtering.learned import GateSource, open_gate
    from gnothi.filtering.likeness import Likeness
    from gnothi.filtering.reference import open_reference
    from gnothi.metrics.bertscore import open_likeness
    from gnothi.signals.entailment import Entailment, open_entailment
    from gnothi.signals.probe import Probe
    from gnothi.signals.probe_folder import open_probe

    openers: Mapping[type, Any] = {
        Probe: open_probe,
        Entailment: open_entailment,
        Likeness: open_likeness,
        ComplexitySource: open_complexity,
        GateSource: open_gate,
        KnowledgeSource: open_knowledge,
    }
    return openers.get(protocol, open_reference)(spec)
