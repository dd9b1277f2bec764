"""Where a model looks: one forward pass with the library's eager attention, whose weights the faster ones never compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gnothi.models.engine.text import Detokenizer
from gnothi.types import Attended


def attend(model: Any, detokenizer: Detokenizer, prompt: Sequence[int], continuation: Sequence[int]) -> Attended:
    """The model's last layer, heads averaged, over the tokens of a prompt and of what follows it (at least one)."""
    ids = [*prompt, *continuation]
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        read = model(input_ids=torch.tensor([ids], device=model.device), use_cache=False, output_attentions=True)
    finally:
        model.set_attn_implementation(usual)
    attention = read.attentions[-1][0].float().mean(dim=0)[len(prompt) :]
    logprobs = read.logits[0, len(prompt) - 1 : -1].float().log_softmax(dim=-1)
    entropies = -(logprobs.exp() * logprobs).nan_to_num().sum(dim=-1)
    text = detokenizer.text([], ids)
    return Attended(tuple(detokenizer.split([], ids, text)), entropies.cpu().numpy(), attention.cpu().numpy())
