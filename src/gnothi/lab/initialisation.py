"""Starting weights that already hold the circuit reading needs, in rough form.

To read is to find the place where the same subject stands and to say what follows it. From random weights, a small model
learns to name *some* object of the right type within a million tokens, and then waits tens of millions for the circuit that
binds an object to its subject (the plateau of associative recall). The circuit is known in closed form, so training starts
near it:

- the first layer's heads look 1, 2, 3, 4 tokens back: constant query and key biases under rotary embedding make a score that
  peaks at a distance, whatever the tokens are; two of them write what they see into subspaces of their own;
- one head of the second layer compares "the token before me" (of the position that is about to name an object) with "the
  token two before me" (of an object in a passage, whose subject stands there), and copies what it finds;
- all other heads start with equal query and key projections, so that a token attends to what resembles it (mimetic
  initialisation, Trockman and Kolter 2023), on the slow rotary pairs only, which survive distance.

Everything stays trainable; ``docs/results/laboratory.md`` shows the learning curves with and without.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM

_DISTANCES = {0: (1, 2, 3, 4), 1: (None, 1, 2)}
"""Layer → how far back each of its first heads looks; None is the head that finds the same subject."""
_SHARPNESS = (8.0, 4.0, 4.0, 4.0)
"""Score (nats) that each of the fastest rotary pairs contributes to a positional head at its distance."""
_FAST_PAIRS = len(_SHARPNESS)
_MATCH_GAIN = 1.5
_ORDER = 0.7


def initialise(model: LlamaForCausalLM, names: list[int], numbers: list[int], seed: int) -> None:
    """Overwrite the freshly built model's weights in place. ``names`` are the token ids of the world's names, ``numbers``
    (some of them) those that have an order, ascending.

    Needs ``attention_bias=True``, at least two layers and four heads.
    """
    import torch

    config: Any = model.config
    generator = torch.Generator().manual_seed(seed)
    hidden, heads = config.hidden_size, config.num_attention_heads
    size = hidden // heads
    own, before, two_before, rest = torch.split(torch.arange(hidden), [size, size, size, hidden - 3 * size])
    slow = torch.cat([torch.arange(_FAST_PAIRS, size // 2), torch.arange(size // 2 + _FAST_PAIRS, size)])

    ordered = torch.tensor(numbers)

    def gaussian(rows: int, columns: int, std: float) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * std

    def selector(rows: torch.Tensor, columns: torch.Tensor, gain: float) -> torch.Tensor:
        weight = torch.zeros(size, hidden)
        weight[rows, columns] = gain
        return weight

    with torch.no_grad():
        embedding = torch.zeros(config.vocab_size, hidden)
        embedding[:, own] = gaussian(config.vocab_size, size, 0.5 / math.sqrt(size))
        embedding[:, rest] = gaussian(config.vocab_size, len(rest), 0.7 / math.sqrt(len(rest)))
        named = torch.zeros(len(names), hidden)
        named[:, own] = gaussian(len(names), size, 1 / math.sqrt(size))
        named[:, rest] = gaussian(len(names), len(rest), 0.3 / math.sqrt(len(rest)))
        embedding[names] = named
        # Numbers start in order: along one direction, from the least to the greatest.
        direction = gaussian(1, len(rest), 1 / math.sqrt(len(rest)))
        embedding[ordered[:, None], rest] += torch.linspace(-_ORDER, _ORDER, len(ordered))[:, None] * direction
        model.model.embed_tokens.weight.copy_(embedding)
        everything = torch.arange(size)
        for index, layer in enumerate(model.model.layers):
            attention = layer.self_attn
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
                projection.bias.zero_()
                projection.weight.copy_(gaussian(hidden, hidden, 0.02))
            mixed = torch.nn.init.orthogonal_(torch.empty(hidden, hidden), generator=generator)
            distances = _DISTANCES.get(index, ())[:heads]
            for head in range(heads):
                rows = slice(head * size, (head + 1) * size)
                value = mixed[rows].clone()
                output = value.T * 0.3
                if head >= len(distances):
                    shared = torch.zeros(size, hidden)
                    shared[slow] = gaussian(len(slow), hidden, 0.8 / math.sqrt(hidden))
                    attention.q_proj.weight[rows] = shared
                    attention.k_proj.weight[rows] = shared
                elif (distance := distances[head]) is None:
                    attention.q_proj.weight[rows] = selector(slow, before[slow], _MATCH_GAIN)
                    attention.k_proj.weight[rows] = selector(slow, two_before[slow], _MATCH_GAIN)
                    value, output = selector(everything, own, 1.0), selector(everything, own, 0.3).T
                else:
                    _look_back(attention, rows.start, size, distance, config.rope_parameters["rope_theta"])
                    if index == 0:
                        value = selector(everything, own, 1.0)
                        output = torch.zeros(hidden, size)
                        if distance <= 2:
                            output = selector(everything, before if distance == 1 else two_before, 0.1).T
                        else:
                            output[rest] = gaussian(len(rest), size, 0.1 / math.sqrt(len(rest)))
                attention.v_proj.weight[rows] = value
                attention.o_proj.weight[:, rows] = output
            mlp: Any = layer.mlp
            mlp.gate_proj.weight.copy_(gaussian(config.intermediate_size, hidden, 1 / math.sqrt(hidden)))
            mlp.up_proj.weight.copy_(gaussian(config.intermediate_size, hidden, 1 / math.sqrt(hidden)))
            mlp.down_proj.weight.copy_(gaussian(hidden, config.intermediate_size, 0.2 / math.sqrt(config.intermediate_size)))


def _look_back(attention: Any, start: int, size: int, distance: int, base: float) -> None:
    """Biases whose rotated product is largest between positions ``distance`` apart."""
    for pair, sharpness in enumerate(_SHARPNESS):
        amplitude = math.sqrt(sharpness * math.sqrt(size))
        angle = -distance * base ** (-2 * pair / size)
        attention.k_proj.bias[start + pair] = amplitude
        attention.q_proj.bias[start + pair] = amplitude * math.cos(angle)
        attention.q_proj.bias[start + size // 2 + pair] = amplitude * math.sin(angle)
