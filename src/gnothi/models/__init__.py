"""What speaks. ``load_model`` turns a model spec into a LanguageModel; importing this package loads no heavy library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gnothi.errors import InvalidSetting, UsageError
from gnothi.models.batched import Backend, Batched
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.rendering import Renderer, make_renderer
from gnothi.models.settings import CallCache, ModelSettings, VLLMSettings
from gnothi.models.wrappers import Calibrated, Seeded, Traced, Wrapper

__all__ = ["SETTINGS", "ModelSettings", "RemoteSettings", "VLLMSettings", "is_remote", "load_model", "settings_class"]

LAB = "lab"
LAB_FOLDER = Path(__file__).parent.parent / "lab" / "model"
REMOTE = "openai:"
VLLM = "vllm:"
SETTINGS: Mapping[str, type[CallCache]] = {
    "in this process": ModelSettings,
    "under vLLM": VLLMSettings,
    "behind an API": RemoteSettings,
}
"""What ``model.`` takes, by kind of model."""

S = TypeVar("S", bound=CallCache)


def is_remote(spec: str) -> bool:
    """Whether the spec names a model behind an API, which costs money and gives no hidden states."""
    return spec.startswith(REMOTE)


def settings_class(spec: str) -> type[CallCache]:
    """What ``model.`` takes for this kind of model."""
    if is_remote(spec):
        return RemoteSettings
    return VLLMSettings if spec.startswith(VLLM) else ModelSettings


def load_model(spec: str, settings: CallCache | None = None) -> Wrapper:
    """The model a spec names: ``lab``, a folder, or a hub id; with ``vllm:`` before it, run by vLLM; or ``openai:NAME``.

    ``settings`` are of the spec's ``settings_class``. Its calls are traced (events.ModelCall), seeded and concurrent;
    ``metadata`` says how it runs. Raises ModelUnavailable, MissingDependency, InvalidSetting or UsageError.
    """
    if is_remote(spec):
        from gnothi.models.remote.opening import open_remote

        return open_remote(spec, _of_kind(RemoteSettings, spec, settings))
    source = spec.removeprefix(VLLM)
    if not source.strip():
        raise UsageError(
            f"no model was named: got {spec!r}, expected 'lab', a folder or a hub id, or one of them after 'vllm:', "
            "or openai:NAME."
        )
    source = str(LAB_FOLDER) if source == LAB else source
    if spec.startswith(VLLM):
        return _load_vllm(spec, source, _of_kind(VLLMSettings, spec, settings))
    return _load_here(spec, source, _of_kind(ModelSettings, spec, settings))


def _load_here(spec: str, source: str, settings: ModelSettings) -> Wrapper:
    from gnothi.models.cache import keep_local
    from gnothi.models.engine.loading import Declaration, load

    loaded: list[tuple[Any, Declaration, Renderer]] = []

    def make() -> Backend:
        model, tokenizer, declared = load(source, spec, settings)
        from gnothi.models.transformers import TransformersBackend

        renderer = make_renderer(settings.renderer, tokenizer, declared.renderer)
        loaded.append((model.config, declared, renderer))
        return TransformersBackend(model, tokenizer, renderer, name=spec, settings=settings)

    batched = Batched.opened(make, spec)
    ((config, declared, renderer),) = loaded
    commit = getattr(config, "_commit_hash", None)
    return Traced(
        Seeded(keep_local(Calibrated(batched, declared.thresholds, declared.tasks), settings, source, commit, renderer.render))
    )


def _load_vllm(spec: str, source: str, settings: VLLMSettings) -> Wrapper:
    from gnothi.models.cache import keep_local
    from gnothi.models.vllm.loading import load

    backend, declared = load(source, spec, settings)
    opened = Calibrated(Batched(backend), declared.thresholds, declared.tasks)
    return Traced(Seeded(keep_local(opened, settings, source, backend.commit, backend.rendered)))


def _of_kind(kind: type[S], spec: str, settings: CallCache | None) -> S:
    if settings is None:
        return kind()
    if not isinstance(settings, kind):
        raise InvalidSetting(f"model {spec!r}: got {type(settings).__name__}, expected settings of the class {kind.__name__}.")
    return settings
