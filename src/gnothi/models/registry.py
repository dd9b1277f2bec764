"""Models by what users call them: ``lab``, a folder, a hub id, or ``SCHEME:ARGUMENT``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.errors import InvalidSetting
from gnothi.models.scheme import PLUGINS, ModelScheme, as_model_scheme
from gnothi.models.settings import CallCache
from gnothi.models.wrappers import Demonstrated, Seeded, Traced, Wrapper, demonstrated
from gnothi.registry import BUILT_IN, Entry, Registry
from gnothi.schemes import split

MODELS: Registry[Any] = Registry("model", "gnothi.models", home="gnothi.models.kinds", attribute="SCHEME")
HERE = "transformers"
"""The scheme of what has none."""


def scheme_of(spec: str) -> tuple[str, ModelScheme, str]:
    """The scheme's name, the scheme and its argument. Raises UnknownName for a scheme that does not exist, or BrokenPlugin."""
    name, argument = split(MODELS, spec)
    return name or HERE, as_model_scheme(MODELS.find(name or HERE)), argument


def is_remote(spec: str) -> bool:
    """Whether the spec names a model behind an API, which costs money and gives no hidden states."""
    return scheme_of(spec)[1].remote


def settings_class(spec: str) -> type[CallCache]:
    """What ``model.`` takes for this kind of model."""
    return scheme_of(spec)[1].settings


def check_model(spec: str, on_the_hub: bool = True) -> None:
    """Raise ModelUnavailable where there is no such model, without loading it. To look ``on_the_hub`` takes a moment, and
    loading does it anyway. A model behind an API answers for itself."""
    _, scheme, argument = scheme_of(spec)
    scheme.check(argument, spec, on_the_hub)


def load_model(spec: str, settings: CallCache | None = None) -> Wrapper:
    """The model a spec names: ``lab``, a folder, or a hub id; with ``vllm:`` before it, run by vLLM; ``openai:NAME``; or what
    another package calls its own.

    ``settings`` are of the spec's ``settings_class``. Its calls are traced (events.ModelCall), seeded and concurrent;
    ``metadata`` says how it runs. Raises ModelUnavailable, MissingDependency, InvalidSetting or UsageError.
    """
    _, scheme, argument = scheme_of(spec)
    given = scheme.settings() if settings is None else settings
    if not isinstance(given, scheme.settings):
        raise InvalidSetting(
            f"model {spec!r}: got {type(given).__name__}, expected settings of the class {scheme.settings.__name__}."
        )
    from gnothi.models.identity import shown_to

    tasks = demonstrated(shown_to(spec, given.demonstrations))  # before the model is loaded, which takes a while
    model = Traced(Seeded(scheme.open(argument, spec, given)))
    return Demonstrated(model, tasks) if tasks else model


def listed() -> dict[str, tuple[str, str]]:
    """What ``--model`` takes, each with a line about it and the distribution that brings it."""
    found: dict[str, tuple[str, str]] = {}
    for entry, scheme in _schemes():
        specs = scheme.specs or {f"{entry.name}:ARGUMENT": scheme.summary}
        found |= {spec: (summary, entry.origin) for spec, summary in specs.items()}
    return found


def settings_listed() -> Mapping[str, type[CallCache]]:
    """What ``model.`` takes, by kind of model."""
    return {
        scheme.where if entry.origin == BUILT_IN else f"{entry.name}:... ({entry.origin})": scheme.settings
        for entry, scheme in _schemes()
        if scheme.where != PLUGINS or scheme.settings is not CallCache
    }


def _schemes() -> list[tuple[Entry, ModelScheme]]:
    """Those that run here first."""
    found = [(entry, as_model_scheme(thing)) for entry, thing in MODELS.items()]
    return sorted(found, key=lambda pair: pair[0].name != HERE)
