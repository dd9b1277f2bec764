"""About how much memory a training takes, told before it starts: from the model's configuration, without its weights.

Activations are counted as by Korthikanti et al. (2022, arXiv 2205.05198, section 4.1, without the attention's square, which the
kernels in use do not keep): 34 bytes a token, layer and hidden unit in half precision.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from gnothi.models.places import find
from gnothi.retrieval.rerank import quiet
from gnothi.session.watch import Watch
from gnothi.training import processes
from gnothi.training.adapter import EVERY, Tuning
from gnothi.training.finetuning import Origin

GB = 1e9
_ACTIVATIONS, _ADAM, _NF4 = 17, 2, 0.55
"""Values kept of a token, layer and hidden unit; states of a weight; bytes of a weight in 4 bits, scales included."""
_LOGITS = 12
"""Bytes of a token and word: logits, their softmax and its gradient in float32."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a model: its weights, those that are trained, hidden units and layers, words."""

    weights: int
    trained: int
    hidden: int
    layers: int
    words: int


@dataclass(frozen=True, slots=True)
class Passes:
    """What goes through the model at a time: rows of so many tokens, of each the last ``scored`` with a distribution."""

    rows: int
    tokens: int
    scored: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on each device."""

    weights: float
    learning: float
    passing: float

    @property
    def total(self) -> float:
        return self.weights + self.learning + self.passing

    @property
    def words(self) -> str:
        parts = (
            f"{_gb(self.weights)} of weights, {_gb(self.learning)} of gradients and optimiser, {_gb(self.passing)} of passes"
        )
        return f"about {_gb(self.total)} GB on each device ({parts})"


def of_model(origin: Origin, tuning: Tuning, passes: Passes) -> Memory | None:
    """Of the training of a language model, None where nothing is known of it."""
    sizes = sizes_of(origin.source, tuning)
    if sizes is None:
        return None
    settings, cuda = origin.to_train, processes.on_cuda(origin.to_train.device)
    width = 2 if settings.dtype == "bfloat16" or (settings.dtype == "auto" and cuda) else 4
    checkpoints = tuning.gradient_checkpointing == "on" or (tuning.gradient_checkpointing == "auto" and cuda)
    return estimate(sizes, tuning, passes, width, settings.quantize != "off", checkpoints)


def report(need: Memory, watch: Watch) -> None:
    """What it needs, with a warning where that is more than there is."""
    import torch

    watch.info(f"training: {need.words}. This is a guess from sizes.")
    if processes.on_cuda():
        there, what = float(torch.cuda.mem_get_info()[1]), "GPU"
    else:
        there, what = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")), "machine"
    if need.total > there:
        watch.warn(
            f"this {what} has {_gb(there)} GB. Less is taken with a smaller <--set rows=4>, <--set gradient_checkpointing=on>, "
            "<--set adapter=lora> or <--set model.quantize=4bit>."
        )


def estimate(sizes: Sizes, tuning: Tuning, passes: Passes, width: int, quantized: bool, checkpoints: bool) -> Memory:
    """``width``: bytes of a weight. What is quantised is so but for what is trained, which an adapter keeps in float32."""
    own = 4 if tuning.adapter == "lora" else width
    learning = sizes.trained * own * (1 + _ADAM)  # gradients, and two states
    adapter = sizes.trained * own if tuning.adapter == "lora" else 0
    tokens = passes.rows * passes.tokens
    layer = _ACTIVATIONS * tokens * sizes.hidden * width
    activations = tokens * sizes.hidden * width * sizes.layers + layer if checkpoints else layer * sizes.layers
    logits = _LOGITS * passes.rows * passes.scored * sizes.words
    return Memory(sizes.weights * (_NF4 if quantized else width) + adapter, learning, activations + logits)


def sizes_of(source: str, tuning: Tuning) -> Sizes | None:
    """None where there is no configuration to be read without loading the model, or none that the library knows."""
    place = find(source)
    if place and not place.folder:
        return None
    import torch
    from torch import nn
    from transformers import AutoConfig

    from gnothi.models.engine.loading import auto_class

    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        with torch.device("meta"), quiet():
            model = auto_class(config).from_config(config)
    except Exception:  # noqa: BLE001 - the libraries raise many kinds; loading says what is wrong
        return None
    text, out = config.get_text_config(), model.get_output_embeddings()
    weights = sum(module.numel() for module in model.parameters())
    adapted = sum(
        tuning.rank * (module.in_features + module.out_features)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not out
        if tuning.targets == EVERY or name.rpartition(".")[2] in tuning.targets
    )
    layers = text.num_hidden_layers + (getattr(text, "num_decoder_layers", 0) or 0)
    return Sizes(weights, adapted if tuning.adapter == "lora" else weights, text.hidden_size, layers, text.vocab_size)


def _gb(number: float) -> str:
    return f"{number / GB:.1f}" if number >= GB / 10 else f"{number / GB:.2f}"
