"""What ``--set model.NAME=VALUE`` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gnothi.models.rendering import RendererName

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "bfloat16", "float64"]
Attention = Literal["auto", "forked", "repeated"]
UseCache = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class CallCache:
    """Settings that every kind of model shares. ``execution`` marks those that results do not depend on."""

    cache: UseCache = field(
        default="auto",
        metadata={"help": "whether replies are kept and reused; auto: those of models behind an API", "execution": True},
    )
    calls_mb: int = field(
        default=1024, metadata={"help": "disk space for kept replies, in MB; the least used go first", "execution": True}
    )


@dataclass(frozen=True, slots=True)
class ModelSettings(CallCache):
    """Settings of the in-process backend."""

    device: Device = field(default="auto", metadata={"help": "where the model runs; auto takes a GPU when there is one"})
    dtype: Precision = field(default="auto", metadata={"help": "precision; auto is bfloat16 on a GPU, float32 on a CPU"})
    renderer: RendererName = field(
        default="auto",
        metadata={"help": "how prompts become text; auto is what the model's folder says, else chat, else plain"},
    )
    attention: Attention = field(
        default="auto", metadata={"help": "how samples share their prompt; auto forks where the architecture allows it"}
    )
    max_rows: int | None = field(
        default=None,
        metadata={"help": "different continuations that are decoded at once, about; none is 256 on a CPU, 1024 on a GPU"},
    )
    prefill_tokens: int = field(default=8192, metadata={"help": "prompt tokens that are read in one pass"})
    cache_mb: int | None = field(
        default=None,
        metadata={
            "help": "memory for keys and values of what is being continued, in MB; none is 4096 on a CPU, "
            "60 % of what the model leaves free on a GPU"
        },
    )
    prefix_cache_mb: int | None = field(
        default=None,
        metadata={
            "help": "memory for keys and values of prompts' beginnings that later prompts may share, in MB; 0 keeps none; "
            "none is room for 16,384 tokens, but at most an eighth of the device's memory"
        },
    )
