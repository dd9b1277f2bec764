"""Models that run in this process, under torch and transformers: what a text without a scheme names."""

from __future__ import annotations

from typing import Any

from gnothi.models.batched import Backend, Batched
from gnothi.models.places import PACKAGED
from gnothi.models.rendering import EscapeSpecialTokens
from gnothi.models.scheme import LAB, LAB_READER, ModelScheme, check_folder, folder_of
from gnothi.models.settings import ModelSettings
from gnothi.models.thinking import renderer_of, thinking_first
from gnothi.models.wrappers import Calibrated
from gnothi.protocols import LanguageModel


def _open(argument: str, spec: str, settings: ModelSettings) -> LanguageModel:
    source = folder_of(argument, spec)
    from gnothi.models.cache import keep_local
    from gnothi.models.engine.loading import Declaration, load_to_answer

    loaded: list[tuple[Any, Declaration, EscapeSpecialTokens]] = []

    def make() -> Backend:
        model, tokenizer, declared = load_to_answer(source, spec, settings)
        from gnothi.models.identity import identify
        from gnothi.models.transformers import TransformersBackend

        fingerprint = identify(source).fingerprint
        renderer = renderer_of(settings, tokenizer, declared.renderer)
        loaded.append((model.config, declared, renderer))
        return TransformersBackend(model, tokenizer, renderer, name=spec, settings=settings, fingerprint=fingerprint)

    batched = Batched.opened(make, spec)
    ((config, declared, renderer),) = loaded
    commit = getattr(config, "_commit_hash", None)
    model = thinking_first(batched, renderer)
    return keep_local(Calibrated(model, declared.thresholds, declared.tasks), settings, source, commit, renderer.render)


SCHEME = ModelScheme(
    open=_open,
    settings=ModelSettings,
    where="in this process",
    specs={
        LAB: "the laboratory's small model, which comes with the package and knows part of an invented world",
        LAB_READER: "the same, trained to choose an answer by what iekr shows it",
        **{name: one.line for name, one in PACKAGED.items()},
        "PATH": "a folder with a model of transformers or an adapter of PEFT, or a GGUF file, which is read once and kept",
        "HUB-ID": "a language model of the Hugging Face hub, or an adapter, as in Qwen/Qwen3-1.7B",
    },
    check=check_folder,
)
