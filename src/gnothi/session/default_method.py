"""Which method suits where none was named: a gate needs a threshold that was chosen for the model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gnothi import methods
from gnothi.config import Settings
from gnothi.errors import GnothiError
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, SERVER_SECTIONS, name_of
from gnothi.models.identity import declaration_of
from gnothi.protocols import LanguageModel
from gnothi.roles import ALWAYS, ANY_GATE, GATED

if TYPE_CHECKING:
    from gnothi.calibration.file import Calibration


def default_method(model: Any, settings: Settings, calibration: Calibration | None) -> tuple[str, str]:
    """The method, and what to tell of the choice, if anything.

    With a calibration the one that it was made for, or that answers as what was recorded. The gated one where the model brings
    thresholds of its own, or a setting was given that only this one has; else the one that searches always."""
    if calibration is not None:
        named = calibration.method
        named = named if named in methods.names() and methods.spec(named).gate else ANY_GATE
        return (
            named,
            f"method {named}: the calibration says when it searches with the model {calibration.model.name or '(any)'}",
        )
    own = settings.plain({MODEL_SECTION, INDEX_SECTION, *SERVER_SECTIONS, *methods.names()})
    only = own.keys() & (methods.spec(GATED).settings.keys() - methods.spec(ALWAYS).settings.keys())
    if only or _thresholds(model):
        return GATED, ""
    return ALWAYS, (
        f"method {ALWAYS}: it always searches, since no threshold was chosen for {name_of(model)}. To search only where the "
        "model is unsure, choose one with `gnothi calibrate`, on questions whose answers you know, or name a <--method>."
    )


def _thresholds(model: Any) -> Mapping[str, float]:
    """Those that the model brings, by signal."""
    found: Mapping[str, float] = {}
    if isinstance(model, str):
        with suppress(GnothiError):  # told by whoever opens the model
            found = declaration_of(model).thresholds
    elif isinstance(model, LanguageModel):
        found = model.profile.thresholds
    return found
