"""Starting weights that already look a few tokens back and already compare content with content.

Reading needs two circuits to meet: one that carries a sentence's subject to its object, one that finds the place where
the same subject stands. From random weights a small model waits tens of millions of tokens for the second (the plateau
of associative recall). Both are known in closed form, so training starts near them:

- *positional heads* (first layer, half of the second): constant query and key biases under rotary embedding give a score
  that peaks at a chosen distance, whatever the tokens are;
- *matching heads* (all others): query and key projections start equal, so that a token attends to what resembles it
  (mimetic initialisation, Trockman and Kolter 2023).

Everything stays trainable; ``docs/lab.md`` shows the learning curves with and without.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM

_FIRST_LAYER = ((1.0, 8.0), (2.0, 8.0), (3.0, 4.0), (4.0, 2.0), (3.0, 0.7), (6.0, 0.7))
_SECOND_LAYER = ((1.0, 8.0), (3.0, 0.7), (5.0, 0.4))
_MATCHING_SCALE = 1.6


def initialise(model: LlamaForCausalLM, seed: int) -> None:
    """Overwrite the freshly built model's weights in place. Needs ``attention_bias=True``."""
    import torch

    config = model.config
    generator = torch.Generator().manual_seed(seed)
    hidden, heads = config.hidden_size, config.num_attention_heads
    size = hidden // heads
    theta = config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2).float() / size)

    def gaussian(rows: int, columns: int, std: float) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * std

    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(gaussian(config.vocab_size, hidden, 1 / math.sqrt(hidden)))
        for index, layer in enumerate(model.model.layers):
            attention = layer.self_attn
            positional = _FIRST_LAYER if index == 0 else _SECOND_LAYER[: heads // 2] if index == 1 else ()
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
                projection.bias.zero_()
            attention.v_proj.weight.copy_(torch.nn.init.orthogonal_(torch.empty(hidden, hidden), generator=generator))
            attention.o_proj.weight.copy_(attention.v_proj.weight.T if index > 0 else gaussian(hidden, hidden, 1 / math.sqrt(hidden)))
            for head in range(heads):
                rows = slice(head * size, (head + 1) * size)
                if head < len(positional):
                    distance, sharpness = positional[head]
                    amplitude = math.sqrt(sharpness * math.sqrt(size))
                    attention.q_proj.weight[rows] = gaussian(size, hidden, 0.02)
                    attention.k_proj.weight[rows] = gaussian(size, hidden, 0.02)
                    attention.k_proj.bias[rows] = torch.cat([torch.ones(size // 2), torch.zeros(size // 2)]) * amplitude
                    angle = -distance * theta
                    attention.q_proj.bias[rows] = torch.cat([angle.cos(), angle.sin()]) * amplitude
                else:
                    shared = gaussian(size, hidden, _MATCHING_SCALE / math.sqrt(hidden))
                    attention.q_proj.weight[rows] = shared
                    attention.k_proj.weight[rows] = shared
            attention.o_proj.weight.mul_(0.5)
            mlp = layer.mlp
            mlp.gate_proj.weight.copy_(gaussian(*mlp.gate_proj.weight.shape, 1 / math.sqrt(hidden)))
            mlp.up_proj.weight.copy_(gaussian(*mlp.up_proj.weight.shape, 1 / math.sqrt(hidden)))
            mlp.down_proj.weight.copy_(gaussian(*mlp.down_proj.weight.shape, 0.3 / math.sqrt(config.intermediate_size)))
