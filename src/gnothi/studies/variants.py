"""From a study to what a run needs: each variant's settings with all layers merged, checked before anything is opened.

The layers: the study's settings < --config, environment, --set < the variant's own settings, for what a variant sets is what it
is about.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gnothi import config
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting, UsageError
from gnothi.methods.given import INDEX_SECTION, MODEL_SECTION
from gnothi.protocols import Method
from gnothi.runs.outcomes import Answering
from gnothi.session import resources
from gnothi.studies.study import Study, Variant


@dataclass(frozen=True, slots=True)
class Opening:
    """What has to be opened for a variant; those that are equal share it."""

    model: str
    index: str | None
    graph: str | None
    settings: tuple[tuple[str, str], ...]
    """Of models and searches, as text: what makes two openings differ."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A variant ready to be opened. ``settings`` hold those of its method, of models and of searches."""

    variant: Variant
    settings: Settings
    model: str
    index: str | None
    graph: str | None

    @property
    def opening(self) -> Opening:
        shared = sorted((key, repr(one.value)) for key, one in self.shared.given.items())
        return Opening(self.model, self.index, self.graph, tuple(shared))

    @property
    def shared(self) -> Settings:
        """What belongs to models and searches."""
        return Settings({key: one for key, one in self.settings.given.items() if _section(key) in _RESOURCES})


_RESOURCES = (MODEL_SECTION, INDEX_SECTION)


@dataclass(frozen=True, slots=True)
class Plan:
    """The variants to be run, in the study's order, and by label why others are left out."""

    variants: tuple[Planned, ...]
    left_out: Mapping[str, str]


def plan(
    study: Study,
    given: Settings,
    model: str | None = None,
    index: str | None = None,
    graph: str | None = None,
    only: Sequence[str] = (),
) -> Plan:
    """What is to be run of a study. ``model``, ``index`` and ``graph`` are the command's and win over the study's, not over a
    variant's; ``only`` are labels, beside which the full method is always run.

    Raises UnknownName or InvalidSetting for methods, settings and labels, naming the study and the variant.
    """
    _check_methods(study)
    chosen = {study.variant(label).label for label in only}
    wanted = [one for one in study.variants if not only or one.label in chosen or one.label == study.full]
    common = {key: Given(value, study.file) for key, value in study.settings.items()} | dict(given.given)
    _check_common(study, common)
    planned, left_out = [], {}
    for variant in wanted:
        settings = _merged(study, variant, common)
        if reason := _lacks(variant, settings):
            left_out[variant.label] = reason
        else:
            planned.append(_planned(study, variant, settings, (model, index, graph)))
    if study.full in left_out:
        raise InvalidSetting(f"{study.file}: the full method, {study.full!r}, {left_out[study.full]}.")
    for label in chosen & left_out.keys():
        raise InvalidSetting(f"--only {label!r}: it {left_out[label]}.")
    if not only:
        _check_heard(study, given)
    return Plan(tuple(planned), left_out)


def _check_methods(study: Study) -> None:
    from gnothi import methods

    for variant in study.variants:
        with _naming(study, variant):
            methods.find(variant.method)


def _check_common(study: Study, common: Mapping[str, Given]) -> None:
    """A plain key must be a setting of one of the study's methods at least."""
    from gnothi import methods

    names = list(dict.fromkeys(variant.method for variant in study.variants))
    for key in study.settings:
        if _section(key) in set(methods.names()) - set(names):
            raise InvalidSetting(f"{study.file}, settings: got {key}, but no variant is of the method {_section(key)}.")
    known = {key: setting for name in names for key, setting in methods.settings_of(name).items()}
    plain = Settings(common).plain({*_RESOURCES, *methods.names()})
    config.check(plain, known, " and ".join(names))


def _merged(study: Study, variant: Variant, common: Mapping[str, Given]) -> Settings:
    """What the variant hears of what is common to all, and its own."""
    from gnothi import methods

    known = methods.settings_of(variant.method)
    heard = {key: one for key, one in common.items() if _section(key) in (*_RESOURCES, variant.method) or key in known}
    source = f"{study.file}, variant {variant.label!r}"
    return Settings(heard | {_own_key(variant, key): Given(value, source) for key, value in variant.settings.items()})


def _lacks(variant: Variant, settings: Settings) -> str:
    """Why a variant cannot be run, where it cannot."""
    for key, how in variant.needs.items():
        given = settings.given.get(f"{variant.method}.{key}") or settings.given.get(key)
        if given is None or config.as_text(given.value) == "none":
            return f"needs --set {variant.method}.{key}=...: {how.strip().rstrip('.')}"
    return ""


def _planned(study: Study, variant: Variant, settings: Settings, specs: tuple[str | None, str | None, str | None]) -> Planned:
    model, index, graph = (
        getattr(variant, key) or spec or getattr(study, key)
        for key, spec in zip(("model", "index", "graph"), specs, strict=True)
    )
    planned = Planned(variant, settings, model or resources.LAB, index, graph)
    with _naming(study, variant):
        resources.model_settings(resources.model_specs(planned.model, [variant.method], settings), settings)
        resources.search_settings(settings)
        if not index and planned.model not in resources.LAB_MODELS:
            resources.check_no_retriever([variant.method], planned.model)
    return planned


def _own_key(variant: Variant, key: str) -> str:
    """Under the method's name, where it is stronger than a plain key from anywhere."""
    return key if _section(key) in (*_RESOURCES, variant.method) else f"{variant.method}.{key}"


def _section(key: str) -> str:
    section, dot, _ = key.partition(".")
    return section if dot else ""


def _check_heard(study: Study, given: Settings) -> None:
    """What ``--set`` says must reach a variant. Raises InvalidSetting where each that has the setting sets it itself."""
    from gnothi import methods

    for key, one in given.given.items():
        if _section(key) in _RESOURCES or not one.source.startswith("--set"):
            continue
        plain = key.partition(".")[2] if _section(key) in methods.names() else key
        having = [
            variant
            for variant in study.variants
            if _section(key) in ("", variant.method) and plain in methods.settings_of(variant.method)
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
        raise InvalidSetting(f"{study.file}, variant {variant.label!r}: {error}") from None


@contextlib.asynccontextmanager
async def open_variants(planned: Sequence[Planned]) -> AsyncIterator[Mapping[str, Answering]]:
    """Variants of equal ``opening``, by label, over resources that are opened once."""
    first = planned[0]
    others = [(one.variant.method, one.settings) for one in planned]
    async with resources.open_resources(first.model, first.index, first.shared, [], first.graph, others) as opened:
        yield {one.variant.label: _method(opened, one) for one in planned}


def _method(opened: resources.Resources, planned: Planned) -> Method:
    try:
        return opened.method(planned.variant.method, planned.settings)
    except UsageError as error:
        label = planned.variant.label
        raise InvalidSetting(f"variant {label!r}: {error} Or name the variants that can be run with --only LABEL.") from None
