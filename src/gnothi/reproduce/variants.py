"""From a study to plans: each variant's settings with all layers merged, checked before anything is opened.

The layers: the study's settings < --config, environment, --set < the variant's own settings, for what a variant sets is what it
is about. A calibration goes to the variants whose gate it is for: of the same signal, with settings that its scores depend on,
without a threshold of their own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gnothi import config
from gnothi.calibration.file import Calibration
from gnothi.calibration.mismatch import fits
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting, UsageError
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, check_keys, check_sections, takes
from gnothi.methods.steps.gating import GateSpec, threshold_of
from gnothi.models import LAB
from gnothi.models.identity import declaration_of
from gnothi.reproduce.study import Study, Variant
from gnothi.session.plan import Plan, Request, resolve
from gnothi.signals.registry import PROBE, SECTION

_RESOURCES = (MODEL_SECTION, INDEX_SECTION)


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """The variants to be run, each with its plan, in the study's order, and by label why others are left out."""

    study: Study
    plans: Mapping[str, Plan]
    left_out: Mapping[str, str]


def plan_study(
    study: Study,
    request: Request,
    only: Sequence[str] = (),
    calibrations: Sequence[Calibration] = (),
    chosen_later: Collection[str] = (),
) -> PlannedStudy:
    """What is to be run of a study. Model, index and graph of ``request`` win over the study's, not over a variant's; its
    methods do not count. ``only`` are labels, beside which the full method is always run; ``chosen_later`` those of variants
    whose threshold is yet to be chosen.

    Raises UnknownName or InvalidSetting for methods, settings and labels, naming the study and the variant, and for a
    calibration that is for none of them.
    """
    study = replace(study, variants=tuple(_with_method_name(study, variant) for variant in study.variants))
    chosen = {study.variant(label).label for label in only}
    variants = [one for one in study.variants if not only or one.label in chosen or one.label == study.full]
    common = {key: Given(value, study.file) for key, value in study.settings.items()} | dict(request.settings.given)
    _check_common(study, common)
    plans, left_out = {}, {}
    for variant in variants:
        settings = _merged(study, variant, common)
        reason = _lacks(variant, settings)
        if not reason:
            plan = _planned(study, variant, replace(request, settings=settings), calibrations)
            reason = "" if variant.label in chosen_later else _lacks_threshold(plan)
        if reason:
            left_out[variant.label] = reason
        else:
            plans[variant.label] = _shifted(study, variant, plan)
    for one in calibrations:
        if all(plan.calibration is not one for plan in plans.values()):
            raise InvalidSetting(
                f"<--calibration>: got {one.source}, a threshold for the signal {one.signal!r}, but no variant of {study.file} "
                "that is run can use it: it needs this signal, the settings of the calibration and no threshold of its own. "
                "Leave it out."
            )
    if study.full in left_out:
        raise InvalidSetting(f"{study.file}: the full method, {study.full!r}, {left_out[study.full]}.")
    for label in chosen & left_out.keys():
        raise InvalidSetting(f"<--only {label!r}>: it {left_out[label]}.")
    if not only:
        _check_reached(study, request.settings)
    return PlannedStudy(study, plans, left_out)


def _with_method_name(study: Study, variant: Variant) -> Variant:
    """With the name of its method, which may be given as ``module:function``."""
    from gnothi import methods

    with _naming(study, variant):
        return replace(variant, method=methods.spec(variant.method).name)


def _check_common(study: Study, common: Mapping[str, Given]) -> None:
    """A plain key must be a setting of one of the study's methods at least."""
    from gnothi import methods

    names = list(dict.fromkeys(variant.method for variant in study.variants))
    for key in study.settings:
        if _section(key) in set(methods.names()) - set(names):
            raise InvalidSetting(f"{study.file}, settings: got {key}, but no variant is of the method {_section(key)}.")
    check_sections(Settings(common), names)
    check_keys(Settings(common).plain({*_RESOURCES, *methods.names()}), names)


def _merged(study: Study, variant: Variant, common: Mapping[str, Given]) -> Settings:
    """What the variant hears of what is common to all, and its own."""
    source = f"{study.file}, variant {variant.label!r}"
    own = {_own_key(variant, key): Given(value, source) for key, value in variant.settings.items()}
    known = takes(variant.method, Settings({**common, **own}))
    return Settings(
        {key: one for key, one in common.items() if _section(key) in (*_RESOURCES, variant.method) or key in known} | own
    )


def _lacks(variant: Variant, settings: Settings) -> str:
    """Why a variant cannot be run, where it cannot."""
    for key, how in variant.needs.items():
        value = settings.given.get(f"{variant.method}.{key}") or settings.given.get(key)
        if value is None or config.as_text(value.value) == "none":
            return f"needs --set {variant.method}.{key}=...: {how.strip().rstrip('.')}"
    return ""


def _planned(study: Study, variant: Variant, common: Request, calibrations: Sequence[Calibration]) -> Plan:
    request = replace(
        common,
        methods=(variant.method,),
        model=variant.model or common.model or study.model or LAB,
        index=variant.index or common.index or study.index,
        graph=variant.graph or common.graph or study.graph,
    )
    with _naming(study, variant):
        plan = resolve(request)
        gate = _open_gate(plan)
        if gate is not None and {gate.key, f"{variant.method}.{gate.key}"}.isdisjoint(variant.settings):
            for one in calibrations:
                if fits(one, gate):
                    plan = resolve(replace(request, calibration=one))
    return replace(plan, methods=tuple(replace(method, variant=variant.label) for method in plan.methods))


def _open_gate(plan: Plan) -> GateSpec | None:
    """The gate of a plan whose decisions hang on a threshold."""
    (method,) = plan.methods
    return None if method.always_retrieves else method.gate


def _threshold(plan: Plan) -> float | None:
    """The one in force; infinite where there is no gate that has one."""
    (method,) = plan.methods
    gate = _open_gate(plan)
    if gate is None or gate.signal is None:
        return math.inf
    speaker = method.speaker(plan.sources.model)
    thresholds = declaration_of(speaker).thresholds if isinstance(speaker, str) else speaker.profile.thresholds
    return threshold_of(thresholds, gate.signal, method.values[gate.key])


def _lacks_threshold(plan: Plan) -> str:
    """Why a variant cannot be run, where its signal has no threshold."""
    (method,) = plan.methods
    gate = _open_gate(plan)
    if _threshold(plan) is not None or gate is None or method.values.get(PROBE):
        return ""
    return (
        f"needs a threshold for the signal {gate.signal!r}, which has no usual one: --calibration FILE, made by "
        f"`gnothi calibrate TRAINING-QUESTIONS --method {method.name} --set signal={gate.signal} --out FILE`"
    )


def _shifted(study: Study, variant: Variant, plan: Plan) -> Plan:
    """With the threshold in force moved as the variant says."""
    threshold, gate = _threshold(plan), _open_gate(plan)
    if not variant.shift:
        return plan
    if gate is None or threshold is None or math.isinf(threshold):
        raise InvalidSetting(
            f"{study.file}, variant {variant.label!r}: got a shift, but {variant.method} has no threshold to shift."
        )
    return plan.changed({gate.key: round(threshold + variant.shift, 6)}, f"{study.file}, variant {variant.label!r}")


def _own_key(variant: Variant, key: str) -> str:
    """Under the method's name, where it is stronger than a plain key from anywhere."""
    return key if _section(key) in (*_RESOURCES, variant.method) else f"{variant.method}.{key}"


def _section(key: str) -> str:
    section, dot, _ = key.partition(".")
    return section if dot and section != SECTION else ""


def _check_reached(study: Study, settings: Settings) -> None:
    """What ``--set`` says must reach a variant. Raises InvalidSetting where each that has the setting sets it itself."""
    from gnothi import methods

    for key, one in settings.given.items():
        if _section(key) in _RESOURCES or not one.source.startswith("--set"):
            continue
        plain = key.partition(".")[2] if _section(key) in methods.names() else key
        having = [
            variant
            for variant in study.variants
            if _section(key) in ("", variant.method) and plain in methods.spec(variant.method).settings
        ]
        if all(plain in variant.settings or key in variant.settings for variant in having):
            raise InvalidSetting(
                f"{one.source}: every variant of {study.file} with this setting sets it itself, so this would change nothing. "
                "Change the study (a copy of it, as a TOML file) instead."
            )


@contextlib.contextmanager
def _naming(study: Study, variant: Variant) -> Iterator[None]:
    """Errors of what was asked for name study and variant."""
    try:
        yield
    except UsageError as error:
        if study.file in str(error):
            raise
        raise InvalidSetting(f"{study.file}, variant {variant.label!r}: {error.message}") from None
