"""The laboratory's models without transformers, whose import takes longer than all the rest of opening them.

A Llama with as many key heads as heads, in float32 on a CPU. It computes what transformers' ``LlamaForCausalLM`` of the same
folder does, to the bit, and has what the engine asks of a model, no more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from gnothi.models.engine.attention import IMPLEMENTATION, Handing, attend
from gnothi.models.engine.trial import Verdict


class Config(SimpleNamespace):
    """What ``config.json`` says."""

    text_alone = True

    def get_text_config(self) -> Config:
        return self


class Read(NamedTuple):
    """``logits`` (rows, tokens, vocabulary); ``attentions`` of each layer (rows, heads, tokens, tokens) where asked for."""

    logits: Tensor
    attentions: tuple[Tensor, ...]


class Grown:
    """Keys and values of each layer (rows, heads, tokens, size), to which each pass adds."""

    def __init__(self) -> None:
        self.layers: list[SimpleNamespace] = []

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        if layer == len(self.layers):
            self.layers.append(SimpleNamespace(keys=keys, values=values))
        else:
            held = self.layers[layer]
            held.keys, held.values = torch.cat([held.keys, keys], dim=-2), torch.cat([held.values, values], dim=-2)
        return self.layers[layer].keys, self.layers[layer].values


class Norm(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.hidden_size))
        self._epsilon = config.rms_norm_eps

    def forward(self, states: Tensor) -> Tensor:
        scale = torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self._epsilon)
        return self.weight * (states * scale)


class SelfAttention(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self._layer, self._size = layer, config.head_dim
        inner, bias = config.num_attention_heads * config.head_dim, config.attention_bias
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(config.hidden_size, inner, bias=bias) for _ in range(3))
        self.o_proj = nn.Linear(inner, config.hidden_size, bias=bias)

    def forward(
        self, states: Tensor, turn: tuple[Tensor, Tensor], mask: Tensor | None, cache: Any, weights: list[Tensor] | None
    ) -> Tensor:
        shape = (*states.shape[:-1], -1, self._size)
        query, keys, values = (one(states).view(shape).transpose(1, 2) for one in (self.q_proj, self.k_proj, self.v_proj))
        query, keys = _turned(query, *turn), _turned(keys, *turn)
        if cache is not None:
            keys, values = cache.update(keys, values, self._layer)
        scale = self._size**-0.5
        if isinstance(cache, Handing):
            mixed = attend(self, query, keys, values, None, scale)[0]
        elif weights is not None:
            hidden = torch.ones(keys.shape[2], keys.shape[2], dtype=torch.bool).triu(1)
            scores = torch.matmul(query, keys.transpose(2, 3)) * scale
            weights.append(functional.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1))
            mixed = torch.matmul(weights[-1], values).transpose(1, 2)
        else:
            causal = query.shape[2] > 1 and mask is None
            mixed = functional.scaled_dot_product_attention(query, keys, values, mask, 0.0, causal, scale=scale).transpose(1, 2)
        output: Tensor = self.o_proj(mixed.reshape(*states.shape[:-1], -1))
        return output


def _turned(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    half = states.shape[-1] // 2
    return (states * cosine) + (torch.cat((-states[..., half:], states[..., :half]), dim=-1) * sine)


class FeedForward(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        outer, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj, self.up_proj = (nn.Linear(outer, inner, bias=bias) for _ in range(2))
        self.down_proj = nn.Linear(inner, outer, bias=bias)

    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.down_proj(functional.silu(self.gate_proj(states)) * self.up_proj(states))
        return output


class Layer(nn.Module):
    def __init__(self, config: Config, layer: int) -> None:
        super().__init__()
        self.self_attn, self.mlp = SelfAttention(config, layer), FeedForward(config)
        self.input_layernorm, self.post_attention_layernorm = Norm(config), Norm(config)

    def forward(self, states: Tensor, *about: Any) -> Tensor:
        states = states + self.self_attn(self.input_layernorm(states), *about)
        whole: Tensor = states + self.mlp(self.post_attention_layernorm(states))
        return whole


class Decoder(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        # One that is given its weights draws none, for which torch would import its compiler. Not frozen: torch chooses a
        # product by that.
        weights = torch.empty(config.vocab_size, config.hidden_size)
        from_weights: Any = nn.Embedding.from_pretrained
        self.embed_tokens: nn.Embedding = from_weights(weights, freeze=False)
        self.layers = nn.ModuleList(Layer(config, number) for number in range(config.num_hidden_layers))
        self.norm = Norm(config)


class LlamaForCausalLM(nn.Module):
    """``generation_config`` is what the folder says of generation."""

    of_library = False
    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, config: Config, generation: Config) -> None:
        super().__init__()
        self.config, self.generation_config = config, generation
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed_tokens

    def set_attn_implementation(self, _: str) -> None:
        """Each pass has the attention that it asks for."""

    def verdict(self) -> Verdict:
        """What a trial of it says; a test holds that it does."""
        return Verdict("forked", added=((("mlp", 1.0),),) * self.config.num_hidden_layers, layers=2)

    def new_cache(self) -> Grown:
        return Grown()

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,  # noqa: ARG002 - as the engine gives it
        logits_to_keep: int = 0,
        output_attentions: bool = False,
    ) -> Read:
        """``attention_mask`` (rows, tokens so far), 0 at padding."""
        fed = input_ids.shape[1]
        positions = torch.arange(fed)[None] if position_ids is None else position_ids
        size = self.config.head_dim
        steps = 1.0 / (self.config.rope_parameters["rope_theta"] ** (torch.arange(0, size, 2, dtype=torch.float) / size))
        angles = (positions[..., None].float() * steps).repeat(1, 1, 2)[:, None]
        mask = None if isinstance(past_key_values, Handing) else _mask(past_key_values, attention_mask, fed)
        weights: list[Tensor] | None = [] if output_attentions else None
        states = self.model.embed_tokens(input_ids)
        turn = angles.cos(), angles.sin()
        for layer in self.model.layers:
            states = layer(states, turn, mask, past_key_values, weights)
        return Read(self.lm_head(self.model.norm(states)[:, -logits_to_keep:]), tuple(weights or ()))


def _mask(cache: Grown | None, mask: Tensor | None, fed: int) -> Tensor | None:
    """Which tokens (rows, 1, fed, so far) each may look at; None where these are all before it, and nothing came earlier."""
    before = cache.layers[0].keys.shape[2] if cache is not None and cache.layers else 0
    padded = mask is not None and not bool(mask.all())
    if not padded and (fed == 1 or not before):
        return None
    visible = torch.ones(fed, before + fed, dtype=torch.bool).tril(before)[None, None]
    return visible & mask[:, None, None].bool() if mask is not None and padded else visible


class Tokens:
    """What the engine asks of a tokenizer of transformers, of a ``tokenizer.json``."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        self.pad_token_id, self.bos_token_id, self.eos_token_id = (
            self.backend_tokenizer.token_to_id(settings[f"{name}_token"]) for name in ("pad", "bos", "eos")
        )
        self.added_tokens_decoder = self.backend_tokenizer.get_added_tokens_decoder()

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size())

    def get_added_vocab(self) -> dict[str, int]:
        return {str(token): number for number, token in self.added_tokens_decoder.items()}

    def __call__(self, texts: Sequence[str], *, add_special_tokens: bool, **_: Any) -> dict[str, list[list[int]]]:
        encodings = self.backend_tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens)
        return {"input_ids": [encoding.ids for encoding in encodings]}


def load(folder: Path) -> tuple[LlamaForCausalLM, Tokens]:
    """The model of the folder, in evaluation mode, and its tokenizer."""
    from safetensors.torch import load_file

    config, generation = (
        Config(**json.loads((folder / f"{name}.json").read_text("utf-8"))) for name in ("config", "generation_config")
    )
    config._attn_implementation = IMPLEMENTATION
    with torch.device("meta"):
        model = LlamaForCausalLM(config, generation)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model.load_state_dict(weights, assign=True)
    model.lm_head.weight = model.model.embed_tokens.weight
    return model.eval(), Tokens(folder)
