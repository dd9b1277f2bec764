"""The reader that the laboratory's model has where a method's paper trains one: IEKR (Du and Zhao 2024, section 4.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gnothi.methods.planned import PlannedMethod
from gnothi.models.scheme import LAB, LAB_READER
from gnothi.protocols import LanguageModel

_OWN = {"reader": LAB_READER, "reason": "false"}
"""Made by `gnothi train reader` (docs/results/iekr.md), which teaches to answer at once."""
_OTHERWISE = {*_OWN, "gate"}
"""Whoever says one of these has another reader in mind: a gate listens to it, by thresholds that were chosen for the model."""


def with_the_laboratorys(method: PlannedMethod, model: Any) -> PlannedMethod:
    """With the shipped reader, where the main model is the laboratory's and nothing else was said."""
    if method.name != "iekr" or model != LAB or _OTHERWISE & method.given.keys():
        return method
    changed = method.changed(_OWN, "the laboratory's default")
    return replace(changed, named={**method.named, "reader": (LanguageModel, LAB_READER)})
