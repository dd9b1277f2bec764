"""Models by what users call them: ``lab``, a folder, a hub id, or ``SCHEME:ARGUMENT``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gnothi import config
from gnothi.errors import InvalidSetting
from gnothi.models.scheme import PLUGINS, ModelScheme, as_model_scheme
from gnothi.models.settings import CallCache
from gnothi.models.wrappers import Demonstrated, Seeded, Traced, Untitled, Wrapper, demonstrated
from gnothi.registry import BUILT_IN, Entry, Registry
from gnothi.schemes import split

MODELS: Registry[ModelScheme] = Registry(
    "model",
    "gnothi.models",
    home="gnothi.models.kinds",
    attribute="SCHEME",
    also={name: f"gnothi.models.kinds.openai:{name.upper()}" for name in ("azure", "lmstudio", "ollama")},
    adapt=as_model_scheme,
)
HERE = "transformers"
"""The scheme of what has none."""
_SECRET = re.compile("key|token|secret|password", re.IGNORECASE)


def scheme_of(spec: str) -> tuple[str, ModelScheme, str]:
    """The scheme's name, the scheme and its argument. Raises UnknownName for a scheme that does not exist, or BrokenPlugin."""
    name, argument = split(MODELS, spec)
    return name or HERE, MODELS.find(name or HERE), argument


def is_remote(spec: str) -> bool:
    """Whether the spec names a model behind an API, which costs money and gives no hidden states."""
    return scheme_of(spec)[1].remote


def settings_class(spec: str) -> type[CallCache]:
    """What ``model.`` takes for this kind of model."""
    return scheme_of(spec)[1].settings


def model_settings(specs: Sequence[str], values: Mapping[str, config.Given]) -> dict[str, CallCache]:
    """The settings under ``model.``, by model: each takes those of its kind. A setting that no model has is an error, unless a
    file or the environment sets it for other kinds.

    Raises UnknownName or InvalidSetting."""
    kinds = {spec: scheme_of(spec)[1].settings for spec in specs}
    known = {kind: config.settings_of(kind) for kind in kinds.values()}
    union = {key: setting for one in known.values() for key, setting in one.items()}
    for key in values.keys() - union.keys():
        if _SECRET.search(key):  # the usual message would show it
            raise InvalidSetting(
                f"setting 'model.{key}': there is no setting of this name, and none takes a secret, since runs record them. "
                "A key for an API is taken from the environment variable OPENAI_API_KEY."
            )
        if elsewhere := [where for where, kind in settings_listed().items() if key in config.settings_of(kind)]:
            if values[key].shared:
                continue
            raise InvalidSetting(
                f"setting 'model.{key}' is of models {' and '.join(elsewhere)}, got {', '.join(specs)}. "
                "`gnothi list models` lists what each kind takes."
            )
        config.check({key: values[key]}, union, "model")
    return {
        spec: config.build(kind, {key: value for key, value in values.items() if key in known[kind]}, "model")
        for spec, kind in kinds.items()
    }


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
    settings = scheme.settings() if settings is None else settings
    if not isinstance(settings, scheme.settings):
        raise InvalidSetting(
            f"model {spec!r}: got {type(settings).__name__}, expected settings of the class {scheme.settings.__name__}."
        )
    from gnothi.models.identity import demonstrations_of

    tasks = demonstrated(demonstrations_of(spec, settings.demonstrations))  # before the model is loaded, which takes a while
    model: Wrapper = Traced(Seeded(scheme.open(argument, spec, settings)))
    model = Untitled(model) if settings.passages == "text" else model
    return Demonstrated(model, tasks) if tasks else model


def listed() -> dict[str, tuple[str, str]]:
    """What ``--model`` takes, each with a line about it and the distribution that brings it."""
    models: dict[str, tuple[str, str]] = {}
    for entry, scheme in _schemes():
        specs = scheme.specs or {f"{entry.name}:ARGUMENT": scheme.summary}
        models |= {spec: (summary, entry.origin) for spec, summary in specs.items()}
    return models


def settings_listed() -> Mapping[str, type[CallCache]]:
    """What ``model.`` takes, by kind of model."""
    return {
        scheme.where if entry.origin == BUILT_IN else f"{entry.name}:... ({entry.origin})": scheme.settings
        for entry, scheme in _schemes()
        if scheme.where != PLUGINS or scheme.settings is not CallCache
    }


def _schemes() -> list[tuple[Entry, ModelScheme]]:
    """Those that run here first."""
    entries = MODELS.items()
    return sorted(entries, key=lambda pair: pair[0].name != HERE)
