"""Models that run in this process, under torch and transformers: what a text without a scheme names."""

from __future__ import annotations

from typing import Any

from gnothi.models.batched import Backend, Batched
from gnothi.models.neutral import Neutral
from gnothi.models.packaged import PACKAGED
from gnothi.models.rendering import Renderer, make_renderer
from gnothi.models.scheme import LAB, LAB_READER, ModelScheme, check_folder, folder_of
from gnothi.models.settings import ModelSettings
from gnothi.models.wrappers import Calibrated
from gnothi.protocols import LanguageModel


def _open(argument: str, spec: str, settings: ModelSettings) -> LanguageModel:
    source = folder_of(argument, spec)
    from gnothi.models.cache import keep_local
    from gnothi.models.engine.loading import Declaration, load

    loaded: list[tuple[Any, Declaration, Renderer]] = []

    def make() -> Backend:
        model, tokenizer, declared = load(source, spec, settings)
        from gnothi.models.identity import identify
        from gnothi.models.transformers import TransformersBackend

        fingerprint = identify(source).fingerprint
        renderer = Neutral(make_renderer(settings.renderer, tokenizer, declared.renderer), tokenizer)
        loaded.append((model.config, declared, renderer))
        return TransformersBackend(model, tokenizer, renderer, name=spec, settings=settings, fingerprint=fingerprint)

    batched = Batched.opened(make, spec)
    ((config, declared, renderer),) = loaded
    commit = getattr(config, "_commit_hash", None)
    return keep_local(Calibrated(batched, declared.thresholds, declared.tasks), settings, source, commit, renderer.render)


SCHEME = ModelScheme(
    open=_open,
    settings=ModelSettings,
    where="in this process",
    specs={
        LAB: "the laboratory's small model, which comes with the package and knows part of an invented world",
        LAB_READER: "the same, trained to choose an answer by what iekr shows it",
        **{name: one.line for name, one in PACKAGED.items()},
        "PATH": "a folder with a model in transformers format, or a GGUF file, which is read once and kept in the cache",
        "HUB-ID": "a causal language model of the Hugging Face hub, as in Qwen/Qwen3-1.7B",
    },
    check=check_folder,
)
