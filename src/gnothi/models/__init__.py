"""What speaks. ``load_model`` turns a model spec into a LanguageModel; importing this package loads no heavy library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gnothi.errors import UsageError
from gnothi.models.batched import Batched
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.rendering import make_renderer
from gnothi.models.settings import CallCache, ModelSettings
from gnothi.models.wrappers import Calibrated, Seeded, Traced, Wrapper

__all__ = ["SETTINGS", "ModelSettings", "RemoteSettings", "is_remote", "load_model", "settings_class"]

LAB = "lab"
REMOTE = "openai:"
SETTINGS: Mapping[str, type[CallCache]] = {"in this process": ModelSettings, "behind an API": RemoteSettings}
"""What ``model.`` takes, by kind of model."""
LAB_FOLDER = Path(__file__).parent.parent / "lab" / "model"


def is_remote(spec: str) -> bool:
    """Whether the spec names a model behind an API, which costs money and gives no hidden states."""
    return spec.startswith(REMOTE)


def settings_class(spec: str) -> type[ModelSettings] | type[RemoteSettings]:
    """What ``model.`` takes for this kind of model."""
    return RemoteSettings if is_remote(spec) else ModelSettings


def load_model(spec: str, settings: CallCache | None = None) -> Wrapper:
    """The model a spec names: ``lab``, a folder, a hub id, or ``openai:NAME``; ``settings`` are of its ``settings_class``.

    Its calls are traced (events.ModelCall), seeded and concurrent; ``metadata`` says how it runs. Raises ModelUnavailable,
    MissingDependency, InvalidSetting or UsageError.
    """
    if not spec.strip():
        raise UsageError("no model was named: got an empty text, expected 'lab', a folder, a hub id or openai:NAME.")
    if is_remote(spec):
        from gnothi.models.remote.opening import open_remote

        return open_remote(spec, settings if isinstance(settings, RemoteSettings) else RemoteSettings())
    return _load_local(spec, settings if isinstance(settings, ModelSettings) else ModelSettings())


def _load_local(spec: str, settings: ModelSettings) -> Wrapper:
    from gnothi.models.local.loading import load

    source = str(LAB_FOLDER) if spec == LAB else spec
    model, tokenizer, declared = load(source, spec, settings)
    from gnothi.models.transformers import TransformersBackend

    renderer = make_renderer(settings.renderer, tokenizer, declared.renderer)
    backend = TransformersBackend(model, tokenizer, renderer, name=spec, settings=settings)
    opened = Calibrated(Batched(backend), declared.thresholds)
    from gnothi.models.cache import Cached, fingerprint, open_store

    if (store := open_store(settings, by_default=False)) is None:
        return Traced(Seeded(opened))
    folder = Path(source).expanduser()
    version = fingerprint(folder) if folder.is_dir() else str(getattr(model.config, "_commit_hash", None))
    identity = {"kind": "local", "version": version, **backend.metadata}
    return Traced(Seeded(Cached(opened, store, identity, renderer.render)))
