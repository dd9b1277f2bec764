"""What ``--set model.NAME=VALUE`` takes for models that run here, and what it takes for every model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeVar

from gnothi.models.rendering import RendererName
from gnothi.models.switches import Thinking

T = TypeVar("T")


def setting(default: T, help: str, execution: bool = False) -> T:
    """A field with a line of help; ``execution`` marks one that results do not depend on."""
    return field(default=default, metadata={"help": help} | ({"execution": True} if execution else {}))


Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "bfloat16", "float64"]
Attention = Literal["auto", "forked", "repeated", "plain"]
Quantize = Literal["off", "8bit", "4bit"]
DeviceMap = Literal["off", "auto", "balanced", "balanced_low_0", "sequential"]
UseCache = Literal["auto", "on", "off"]

PREFILL_TOKENS = 8192
"""Prompt tokens that are read in one pass, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class CallCache:
    """Settings that every kind of model shares."""

    cache: UseCache = setting(
        "auto", "whether replies are kept and reused; auto: those of models behind an API", execution=True
    )
    demonstrations: str = setting(
        "auto",
        "worked examples that are shown: default, short, zero-shot (none), skill-rag, seakr or iekr (a paper's prompt), or a "
        "TOML file of your own; auto is what the model's folder says, else default",
    )
    passages: Literal["titled", "text"] = setting(
        "titled", "how passages are shown: under their titles, or their text alone, as the code of several papers does"
    )
    calls_mb: int = setting(
        1024, "disk space for kept replies, in MB; those not used for longest are deleted first", execution=True
    )


@dataclass(frozen=True, slots=True)
class HereSettings(CallCache):
    """Settings of the backends that run a model on this machine: in this process, or under vLLM."""

    device: Device = setting("auto", "where the model runs; auto takes a GPU when there is one")
    dtype: Precision = setting(
        "auto",
        "precision; auto is bfloat16 on a GPU, and for a larger model on a CPU if a trial at loading shows that it is faster "
        "(not under vLLM), else float32; a resumed run and a run with a calibration keep the recorded one",
    )
    renderer: RendererName = setting(
        "auto", "how prompts become text; auto is what the model's folder says, else chat, else plain"
    )
    thinking: Thinking = setting(
        "off",
        "whether the model thinks before it answers: off, on, or an effort (low, medium, high ...) if its template takes one. "
        "Continuations of an answer, scores and hidden states of prompts always use an empty thought",
    )
    thinking_tokens: int = setting(
        2048, "most tokens of a thought, in addition to the answer's; a longer thought is ended there, and the model answers"
    )
    date: str = setting(
        "auto", "today's date for chat templates that state it, such as 2026-11-27; a resumed run keeps its own"
    )
    max_rows: int | None = setting(
        None, "about how many continuations are decoded at a time; none is 256 on a CPU, 1024 on a GPU"
    )
    context: int = setting(
        0,
        "most tokens of prompt and reply together; 0 is the model's own limit, if any, and under vLLM what memory allows",
    )
    prefill_tokens: int | None = setting(
        None,
        "prompt tokens that are read in one pass; between passes, other continuations advance. none is 8192 on a GPU, fewer "
        "for larger models on a CPU (500 at 135 million parameters)",
    )
    cache_mb: int | None = setting(
        None,
        "memory for keys and values of the texts being continued, in MB; none is an eighth of the free memory on a CPU "
        "(4096 MB under vLLM), 60% of what the model leaves free on a GPU (under vLLM, gpu_memory decides)",
    )


@dataclass(frozen=True, slots=True)
class ModelSettings(HereSettings):
    """Settings of the in-process backend."""

    pack_weights: bool = setting(True, "on a CPU, rearrange the weights of linear layers once for the processor")
    quantize: Quantize = setting("off", "weights in 8 or 4 bits, by bitsandbytes on a CUDA device (extra quantized)")
    device_map: DeviceMap = setting("off", "how the layers are spread over several GPUs, by accelerate")
    attention: Attention = setting(
        "auto",
        "how samples share their prompt; auto is the fastest of forked, repeated and plain (a pass over the whole text for "
        "every token) that a trial finds equal to plain passes",
    )
    prefix_cache_mb: int | None = setting(
        None,
        "memory for keys and values of the beginnings of prompts, which later prompts may share, in MB; 0 keeps none; "
        "none is room for 16,384 tokens, but at most an eighth of the device's memory",
    )


@dataclass(frozen=True, slots=True)
class VLLMSettings(HereSettings):
    """Settings of models under vLLM, which shares prompts and keeps their beginnings in its own way."""

    gpu_memory: float = setting(0.9, "share of the GPU's memory that vLLM takes, weights included")
    tensor_parallel: int = setting(1, "GPUs that share each layer")
    eager: bool = setting(True, "without compiled graphs; false is faster and gives no hidden states")
