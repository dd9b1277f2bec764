"""Models under vLLM."""

from __future__ import annotations

from gnothi.models.batched import Batched
from gnothi.models.scheme import ModelScheme, check_folder, folder_of
from gnothi.models.settings import VLLMSettings
from gnothi.models.thinking import thinking_first
from gnothi.models.wrappers import Calibrated
from gnothi.protocols import LanguageModel


def _open(argument: str, spec: str, settings: VLLMSettings) -> LanguageModel:
    source = folder_of(argument, spec)
    from gnothi.models.cache import keep_local
    from gnothi.models.vllm.loading import load

    backend, declared, renderer = load(source, spec, settings)
    model = thinking_first(Batched(backend), renderer)
    opened = Calibrated(model, declared.thresholds, declared.tasks)
    return keep_local(opened, settings, source, backend.commit, renderer.render)


SCHEME = ModelScheme(
    open=_open,
    settings=VLLMSettings,
    where="under vLLM",
    specs={"vllm:MODEL": "any of these under vLLM (extra vllm), for large models on a GPU"},
    check=check_folder,
)
