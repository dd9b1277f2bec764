"""What speaks. ``load_model`` turns a model spec into a LanguageModel; importing this package loads no heavy library."""

from __future__ import annotations

from pathlib import Path

from gnothi.errors import UsageError
from gnothi.models.batched import Backend, Batched
from gnothi.models.rendering import make_renderer
from gnothi.models.settings import ModelSettings
from gnothi.models.wrappers import Calibrated, Seeded, Traced, Wrapper

__all__ = ["ModelSettings", "load_model"]

LAB = "lab"
LAB_FOLDER = Path(__file__).parent.parent / "lab" / "model"
VLLM = "vllm:"


def load_model(spec: str, settings: ModelSettings | None = None) -> Wrapper:
    """The model a spec names: ``lab``, a folder, or a hub id; with ``vllm:`` before it, run by vLLM.

    Its calls are traced (events.ModelCall), seeded and batched; ``metadata`` says how it runs. Raises ModelUnavailable,
    MissingDependency, InvalidSetting, or UsageError for kinds of models that this version lacks.
    """
    settings = settings or ModelSettings()
    if spec.startswith("openai:"):
        raise UsageError(
            f"model {spec!r}: models behind an API are not available in this version; use 'lab', a folder or a hub id."
        )
    source = spec.removeprefix(VLLM)
    if not source.strip():
        raise UsageError(
            f"no model was named: got {spec!r}, expected 'lab', a folder or a hub id, or one of them after 'vllm:'."
        )
    source = str(LAB_FOLDER) if source == LAB else source
    if spec.startswith(VLLM):
        from gnothi.models.vllm.loading import load as start

        served, declared = start(source, spec, settings)
        return Traced(Seeded(Calibrated(Batched(served), declared.thresholds)))
    from gnothi.models.local.loading import load

    thresholds: dict[str, float] = {}

    def make() -> Backend:
        model, tokenizer, declared = load(source, spec, settings)
        from gnothi.models.transformers import TransformersBackend

        thresholds.update(declared.thresholds)
        renderer = make_renderer(settings.renderer, tokenizer, declared.renderer)
        return TransformersBackend(model, tokenizer, renderer, name=spec, settings=settings)

    return Traced(Seeded(Calibrated(Batched.opened(make, spec), thresholds)))
