"""What ``--set model.NAME=VALUE`` takes for models that run here, and what it takes for every model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeVar

from gnothi.models.rendering import RendererName

T = TypeVar("T")


def setting(default: T, help: str, execution: bool = False) -> T:
    """A field with a line of help; ``execution`` marks one that results do not depend on."""
    return field(default=default, metadata={"help": help} | ({"execution": True} if execution else {}))


Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "bfloat16", "float64"]
Attention = Literal["auto", "forked", "repeated"]
UseCache = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class CallCache:
    """Settings that every kind of model shares."""

    cache: UseCache = setting(
        "auto", "whether replies are kept and reused; auto: those of models behind an API", execution=True
    )
    demonstrations: str = setting("default", "worked examples that are shown: default, short, or a TOML file of your own")
    calls_mb: int = setting(1024, "disk space for kept replies, in MB; the least used go first", execution=True)


@dataclass(frozen=True, slots=True)
class HereSettings(CallCache):
    """Settings of the backends that run a model on this machine: in this process, or under vLLM."""

    device: Device = setting("auto", "where the model runs; auto takes a GPU when there is one")
    dtype: Precision = setting("auto", "precision; auto is bfloat16 on a GPU, float32 on a CPU")
    renderer: RendererName = setting(
        "auto", "how prompts become text; auto is what the model's folder says, else chat, else plain"
    )
    max_rows: int | None = setting(
        None, "different continuations that are decoded at once, about; none is 256 on a CPU, 1024 on a GPU"
    )
    prefill_tokens: int = setting(8192, "prompt tokens that are read in one pass")
    cache_mb: int | None = setting(
        None,
        "memory for keys and values of what is being continued, in MB; none is 4096 on a CPU, "
        "60 % of what the model leaves free on a GPU (under vLLM: on a CPU alone, gpu_memory says it for a GPU)",
    )


@dataclass(frozen=True, slots=True)
class ModelSettings(HereSettings):
    """Settings of the in-process backend."""

    pack_weights: bool = setting(
        True, "on a CPU in float32, lay the weights of linear layers out once, as its kernels read them"
    )
    attention: Attention = setting("auto", "how samples share their prompt; auto forks where the architecture allows it")
    prefix_cache_mb: int | None = setting(
        None,
        "memory for keys and values of prompts' beginnings that later prompts may share, in MB; 0 keeps none; "
        "none is room for 16,384 tokens, but at most an eighth of the device's memory",
    )


@dataclass(frozen=True, slots=True)
class VLLMSettings(HereSettings):
    """Settings of models under vLLM, which shares prompts and keeps their beginnings in its own way."""

    gpu_memory: float = setting(0.9, "share of the GPU's memory that vLLM takes, weights included")
    context: int = setting(0, "tokens of prompt and reply; 0 is what the model and memory allow")
    eager: bool = setting(True, "without compiled graphs; false is faster and gives no hidden states")
