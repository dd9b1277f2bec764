"""Starting vLLM on a model: which versions, which of its options, and the error when it cannot be started."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from gnothi.errors import InvalidSetting, MissingDependency, ModelUnavailable
from gnothi.models.encoding import end_tokens
from gnothi.models.engine.loading import (
    Declaration,
    declared,
    generation_config,
    no_progress_bars,
    unloadable,
    warn_of_habits,
    weights_of,
)
from gnothi.models.generation_config import not_followed
from gnothi.models.places import locate
from gnothi.models.rendering import EscapeSpecialTokens
from gnothi.models.settings import PREFILL_TOKENS, VLLMSettings
from gnothi.models.thinking import renderer_of
from gnothi.models.vllm.backend import SHUTDOWN, VLLMBackend
from gnothi.models.vllm.worker import EXTENSION
from gnothi.types import Profile

# Versions that the conformance suite was run with. Older ones lack what the backend asks for; with newer ones it works without
# hidden states, for those depend on vLLM's insides.
KNOWN = ((0, 31), (0, 32))


def load(spec: str, name: str, settings: VLLMSettings) -> tuple[VLLMBackend, Declaration, EscapeSpecialTokens]:
    """The backend of a folder or hub id, what the folder declares, and what writes the prompts.

    Raises MissingDependency without vLLM, ModelUnavailable for a version that is too old, a device that it was not built for,
    or a model that it cannot load, InvalidSetting for settings that it has no use for.
    """
    if importlib.util.find_spec("vllm") is None:
        raise MissingDependency("vllm", "vllm", f"running model {name!r}")
    _check_settings(settings)
    place = locate(spec, name)
    version = _start(settings)
    on_cpu = _on_cpu(name, settings)
    _check_parallel(settings, on_cpu)
    no_states = _no_states(version, settings)
    if place.base:
        raise ModelUnavailable(
            f"cannot load model {name!r} under vLLM: got an adapter (of PEFT). Expected a whole model: leave out 'vllm:', or "
            "save adapter and base as one with PEFT (merge_and_unload, save_pretrained)."
        )
    source = place.ready(name)
    try:
        from transformers import AutoTokenizer

        with no_progress_bars():
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            generation = generation_config(source)
    # The libraries raise many kinds of exceptions; to a user they all mean the same.
    except Exception as error:
        raise unloadable(name, error, place) from error
    declaration = declared(place.folder)
    renderer = renderer_of(settings, tokenizer, declaration.renderer)
    engine: Any = None
    try:
        from vllm import EngineArgs, LLMEngine

        engine = LLMEngine.from_engine_args(EngineArgs(**_options(source, settings, on_cpu, bool(no_states))))
        no_states = no_states or str(engine.collective_rpc("gnothi_start")[0])
    except Exception as error:
        if engine is not None:
            engine.engine_core.shutdown(timeout=SHUTDOWN)
        raise unloadable(name, error, place) from error
    warn_of_habits(name, generation)
    config = engine.model_config
    precision, layers = str(config.dtype).removeprefix("torch."), int(config.hf_text_config.num_hidden_layers)
    backend = VLLMBackend(
        engine,
        tokenizer,
        renderer,
        name=name,
        eos=end_tokens(tokenizer, generation, config.hf_text_config),
        # One token is left for the one that vLLM must generate when a full sequence is fed again for its state.
        context=config.max_model_len - 1,
        profile=Profile(parameters=weights_of(config.hf_config), layers=layers, precision=precision),
        no_states=no_states,
        commit=getattr(config.hf_config, "_commit_hash", None),
        metadata={
            "model": name,
            "backend": f"vllm {version}",
            "architecture": ", ".join(config.architectures),
            "device": "cpu" if on_cpu else "cuda",
            "dtype": precision,
            "layers": str(layers),
            "hidden_states": f"none: {no_states}" if no_states else "fed again",
            **not_followed(generation),
        },
    )
    return backend, declaration, renderer


def _check_settings(settings: VLLMSettings) -> None:
    """Values that vLLM has no use for are refused rather than ignored."""
    if settings.dtype == "float64":
        raise InvalidSetting("setting 'model.dtype': got 'float64', expected float32 or bfloat16 with vLLM.")
    if not 0 < settings.gpu_memory <= 1:
        raise InvalidSetting(
            f"setting 'model.gpu_memory': got {settings.gpu_memory}, expected a share, more than 0 and at most 1."
        )
    if settings.context < 0:
        raise InvalidSetting(f"setting 'model.context': got {settings.context}, expected 0 (what fits) or a number of tokens.")


def _check_parallel(settings: VLLMSettings, on_cpu: bool) -> None:
    """Raise InvalidSetting for more GPUs than there are."""
    import torch

    there = 1 if on_cpu else max(1, torch.cuda.device_count())
    if not 1 <= settings.tensor_parallel <= there:
        raise InvalidSetting(
            f"setting 'model.tensor_parallel': got {settings.tensor_parallel}, expected the number of GPUs that share "
            "the model: "
            + ("1, since this build of vLLM runs on the CPU." if on_cpu else f"1 to {there}, which this machine has.")
        )


def _start(settings: VLLMSettings) -> str:
    """Import vLLM; its version. Its environment variables must be set before, those a user has set stay."""
    # Standard output belongs to our results.
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    # vLLM reports its use to a server of its makers unless this is set.
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    if settings.eager:
        # The newer of vLLM's two runners lays out its batches differently; the worker extension knows the older one.
        os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")
    try:
        import vllm
    except Exception as error:
        raise ModelUnavailable(
            f"vLLM is installed but cannot be imported: {str(error).strip() or type(error).__name__}. "
            "Try `python -c 'import vllm'`; torchvision or torchaudio of another build than torch are a frequent cause."
        ) from error
    version = str(vllm.__version__)
    if () < _release(version) < min(KNOWN):
        raise ModelUnavailable(f"vLLM {version} is too old: expected {_known()}. Install it with: pip install 'gnothi[vllm]'")
    return version


def _no_states(version: str, settings: VLLMSettings) -> str:
    """Why hidden states cannot be had, as far as is known before vLLM runs; empty when they can."""
    if not settings.eager:
        return "by setting: compiled graphs run past the place where states are read (the setting model.eager = true)"
    if _release(version) not in KNOWN:
        return f"vLLM {version} is not among the versions whose insides are known ({_known()})"
    return ""


def _release(version: str) -> tuple[int, ...]:
    """Major and minor number; of a version that cannot be read (a build from source), none."""
    parts = version.split("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts) if len(parts) == 2 and all(part.isdigit() for part in parts) else ()


def _known() -> str:
    return " or ".join(".".join(map(str, release)) for release in KNOWN)


def _on_cpu(name: str, settings: VLLMSettings) -> bool:
    """A build of vLLM is for one kind of device, so the setting can only agree with it."""
    from vllm.platforms import current_platform

    on_cpu = bool(current_platform.is_cpu())
    built = "cpu" if on_cpu else "cuda"
    if settings.device not in ("auto", built):
        raise ModelUnavailable(
            f"cannot load model {name!r} on {settings.device}: this build of vLLM runs on {built}. "
            f"Leave model.device out, or install the build for {settings.device}."
        )
    return on_cpu


def _options(source: str, settings: VLLMSettings, on_cpu: bool, no_states: bool) -> dict[str, Any]:
    """Arguments for vLLM's ``EngineArgs``."""
    rows = settings.max_rows or (256 if on_cpu else 1024)
    if on_cpu:
        device: dict[str, Any] = {
            "kv_cache_memory_bytes": (4096 if settings.cache_mb is None else settings.cache_mb) * 2**20,
            # A multiple of 32 is needed; the smallest loses the least where a prefix ends within a block.
            "block_size": 32,
            # Prompts are read whole: on a CPU vLLM 0.32 dies when it reads the prompt of a seeded sample in parts.
            "enable_chunked_prefill": False,
        }
    else:
        device = {
            "gpu_memory_utilization": settings.gpu_memory,
            "max_num_batched_tokens": max(settings.prefill_tokens or PREFILL_TOKENS, rows),
        }
    return {
        "model": source,
        "trust_remote_code": False,
        "tensor_parallel_size": settings.tensor_parallel,
        "dtype": settings.dtype if settings.dtype != "auto" else "float32" if on_cpu else "bfloat16",
        "max_model_len": settings.context or -1,
        "max_num_seqs": rows,
        "enable_prefix_caching": True,
        "enforce_eager": settings.eager,
        "logprobs_mode": "raw_logprobs",
        "generation_config": "vllm",
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "seed": 0,
        **device,
        **({} if no_states else {"worker_extension_cls": EXTENSION}),
    }
