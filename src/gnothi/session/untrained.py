"""Methods that ask a model what it has to be trained to say: whether it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnothi.methods.planned import PlannedMethod
from gnothi.models.identity import declaration_of
from gnothi.signals.kinds.self_report import KNOW

_FILTERS = {("skill_rag", "task", "know"): "task=useful", ("compose", "filter", "pmi"): "filter=relevance"}
"""Method, setting and value by which sentences are kept where they raise P("Yes, I know"); what does not need the training."""


def untrained(methods: Sequence[PlannedMethod], model: Any) -> list[str]:
    """A warning for each method whose filter listens to a model that nobody trained for it; ``model`` is the main one. Models
    given as objects do not say."""
    return [
        f"{method.name}: nobody trained the model {judge!r} to say what it knows, by which the filter goes. Train it with "
        f"`gnothi train self-knowledge`, or have it asked whether a sentence is useful: the setting {instead}."
        for method in methods
        for (name, key, value), instead in _FILTERS.items()
        if method.name == name
        and method.values.get(key) == value
        and isinstance(judge := method.named.get("judge", (None, model))[1], str)
        and not _learnt(judge)
    ]


def _learnt(spec: str) -> bool:
    declaration = declaration_of(spec)
    return declaration.trained == "self-knowledge" or KNOW.name in (declaration.tasks or ())
