"""Methods that ask a model what it has to be trained to say: whether it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnothi import methods
from gnothi.methods.planned import PlannedMethod
from gnothi.models.identity import declaration_of
from gnothi.signals.kinds.self_report import KNOW


def untrained(planned: Sequence[PlannedMethod], model: Any) -> list[str]:
    """A warning for each method whose filter listens to a model that nobody trained for it; ``model`` is the main one. Models
    given as objects do not say."""
    return [
        f"{method.name}: nobody trained the model {judge!r} to say what it knows, by which the filter goes. Train it with "
        f"`gnothi train self-knowledge`, or have it asked whether a sentence is useful: the setting {asks.instead}."
        for method in planned
        if (asks := getattr(methods.find(method.name), "asks_self_knowledge", None))
        and method.values[asks.key] == asks.value
        and isinstance(judge := method.named.get("judge", (None, model))[1], str)
        and not _learnt(judge)
    ]


def _learnt(spec: str) -> bool:
    declaration = declaration_of(spec)
    return declaration.trained == "self-knowledge" or KNOW.name in (declaration.tasks or ())
