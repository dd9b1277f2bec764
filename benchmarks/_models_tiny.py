"""Tiny random models of every causal family that the installed transformers has, and a tokenizer of invented words for them.

A configuration is made of its family's defaults with small numbers in place of large ones, wherever it has such a number; a few
families need more, and some are made in several variants, because what a family can do is more than what its defaults say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")
VOCABULARY = (*SPECIAL, *(f"w{number}" for number in range(92)))
BEGIN, END = 2, 3
LAYERS, WINDOW = 4, 16

_WEIGHTS_SPREAD = 0.2
"""Of random weights: wide enough that what a model says depends on every part of it."""

# Small numbers, and the names that families have for what they are of.
_NAMES: tuple[tuple[Any, str], ...] = (
    (len(VOCABULARY), "vocab_size vocab_size_per_layer_input moe_vocab_size"),
    (0, "pad_token_id"),
    (BEGIN, "bos_token_id"),
    (END, "eos_token_id"),
    (
        32,
        "hidden_size d_model n_embd word_embed_proj_dim embedding_size attention_hidden_size dim_model emb_dim lru_width",
    ),
    (
        48,
        "intermediate_size ffn_dim n_inner block_ff_dim ffn_hidden_size dim_ff dff intermediate_size_mlp mlp_hidden_size "
        "dense_intermediate_size decoder_ffn_dim encoder_ffn_dim",
    ),
    (
        LAYERS,
        "num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers num_decoder_layers",
    ),
    (
        4,
        "num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads linear_num_value_heads "
        "linear_num_heads",
    ),
    (2, "num_key_value_heads num_kv_heads swa_num_key_value_heads linear_num_key_heads num_experts_per_tok moe_topk moe_k"),
    (2, "top_k_experts type_vocab_size"),
    (
        8,
        "head_dim qk_rope_head_dim qk_nope_head_dim v_head_dim dim_head swa_head_dim attention_head_dim kv_channels "
        "swa_v_head_dim global_head_dim index_head_dim query_pre_attn_scalar linear_key_head_dim linear_value_head_dim "
        "linear_head_dim",
    ),
    (
        8,
        "state_size mamba_d_state ssm_state_size chunk_size mamba_chunk_size mamba_d_head mamba_headdim mamba_head_dim "
        "mamba_n_heads n_mamba_heads mamba_num_heads hidden_size_per_layer_input",
    ),
    (512, "max_position_embeddings n_positions n_ctx max_seq_len context_length max_sequence_length"),
    (
        WINDOW,
        "sliding_window window_size attention_chunk_size attention_window_size sliding_window_size local_attention "
        "moe_intermediate_size shared_expert_intermediate_size moe_shared_expert_intermediate_size expert_ffn_hidden_size "
        "shared_intermediate_size q_lora_rank kv_lora_rank",
    ),
    (6, "num_local_experts num_experts n_routed_experts moe_num_experts"),
    (
        1,
        "n_shared_experts first_k_dense_replace n_group topk_group num_shared_experts moe_num_shared_experts mamba_n_groups "
        "n_groups mamba_ngroups",
    ),
    (4, "rotary_dim mamba_dt_rank time_step_rank"),
    (5.0, "attn_logit_softcapping final_logit_softcapping"),
    (_WEIGHTS_SPREAD, "initializer_range"),
)
_SMALL: Mapping[str, Any] = {name: value for value, named in _NAMES for name in named.split()}

_WINDOWS = ["sliding_attention", "full_attention"] * (LAYERS // 2)
_FULL = ["full_attention"] * LAYERS


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10_000.0, "rope_type": kind, **more}}


_LONG = {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "original_max_position_embeddings": 32, "factor": 16.0}


# Families whose heads share one compressed state, and those that read both ways unless they are told not to.
_LATENT = (
    "axk1 axk2 deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa minicpm3 longcat_flash youtu dots3_note "
    "dots3_note_text"
)
_ENCODERS = (
    "bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta roberta-prelayernorm "
    "roformer xlm-roberta xlm-roberta-xl xmod roc_bert reformer"
)
_MORE: Mapping[str, Mapping[str, Any]] = {
    **{name: {"num_key_value_heads": 4} for name in _LATENT.split()},
    **{
        name: {"layer_types": ["linear_attention", "full_attention"] * 2, "num_key_value_heads": 4}
        for name in ("bailing_hybrid", "kimi_linear")
    },
    "falcon": {"num_kv_heads": 4, "multi_query": True, "new_decoder_architecture": False, "parallel_attn": True},
    "falcon_h1": {"mamba_d_ssm": 64},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "gemma2": {"layer_types": _WINDOWS},
    "gemma3_text": {"layer_types": _WINDOWS},
    "cohere2": {"layer_types": _WINDOWS},
    "gpt_oss": {"layer_types": _WINDOWS},
    "phi3": {"sliding_window": None},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2, "num_dense_layers": 1},
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "qwen2_moe": {"mlp_only_layers": [0], "decoder_sparse_step": 1},
    "bamba": {"attn_layer_indices": [1, 3]},
    "granite": {"residual_multiplier": 0.5, "attention_multiplier": 0.3, "logits_scaling": 2.0},
    "granitemoe": {"residual_multiplier": 0.5},
    "granitemoeshared": {"residual_multiplier": 0.5},
    "smollm3": {"no_rope_layers": [1, 0, 1, 1]},
    "glm4": {"partial_rotary_factor": 0.5},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "gemma3n_text": {"layer_types": _WINDOWS, "num_kv_shared_layers": 2, "activation_sparsity_pattern": [0.0] * LAYERS},
    "zamba": {"layers_block_type": ["mamba", "mamba", "hybrid", "mamba"], "attention_head_dim": 16},
    "zamba2": {"layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "num_mem_blocks": 1, "hybrid_layer_ids": [1, 3]},
    "zaya": {"num_experts_per_tok": 1},
    "roc_bert": {"shape_vocab_size": 20, "pronunciation_vocab_size": 20, "pronunciation_embed_dim": 8, "shape_embed_dim": 8},
    **{name: {"is_decoder": True} for name in _ENCODERS.split()},
}  # fmt: skip

_VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, linear frequencies": ("llama", _rope("linear", factor=4.0)),
    "llama, dynamic frequencies": ("llama", _rope("dynamic", factor=4.0)),
    "llama, yarn": ("llama", _rope("yarn", factor=4.0, original_max_position_embeddings=128)),
    "llama, llama3 frequencies": (
        "llama", _rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=128),
    ),
    "llama, longrope": ("llama", {**_rope("longrope", **_LONG), "original_max_position_embeddings": 32}),
    "phi3, longrope": ("phi3", {"sliding_window": None, "original_max_position_embeddings": 32, **_rope("longrope", **_LONG)}),
    "phi3, window": ("phi3", {"sliding_window": WINDOW}),
    "qwen2, window": ("qwen2", {"use_sliding_window": True, "max_window_layers": 2}),
    "falcon, alibi": ("falcon", {"alibi": True, "multi_query": True, "new_decoder_architecture": False}),
    "falcon, two norms": ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "gpt_neox, one after the other": ("gpt_neox", {"use_parallel_residual": False}),
    "bert, both ways": ("bert", {"is_decoder": False}),
    "llama4_text, chunks alone": ("llama4_text", {"no_rope_layers": [1, 1, 1, 1]}),
    "granite, plain": ("granite", {}),
}  # fmt: skip


def names() -> list[str]:
    """Every family, and the variants."""
    return sorted({*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *_VARIANTS})


def configuration(name: str) -> Any:
    """Of a tiny model; raises whatever the library raises where it cannot be made."""
    family, more = _VARIANTS.get(name, (name, _MORE.get(name, {})))
    kind: Any = CONFIG_MAPPING[family]
    usual = kind()
    text = usual.get_text_config()
    if text is usual:
        return kind(**{**_small(kind), **more})
    part = next(key for key, value in vars(usual).items() if value is text)
    made = {**_small(type(text)), "model_type": type(text).model_type, **_MORE.get(type(text).model_type, {}), **more}
    return kind(
        **{part: made}, **{key: value for key, value in _SMALL.items() if key.endswith("token_id") and hasattr(usual, key)}
    )


def _small(kind: Any) -> dict[str, Any]:
    """The small numbers of those that a kind of configuration has."""
    usual = kind()
    other = usual.attribute_map or {}
    has = set(usual.to_dict())
    return {key: value for key, value in _SMALL.items() if key in has or (key in other and other[key] not in _SMALL)}


_MOST = 8_000_000
"""Weights: what is larger was not made small."""


def model(name: str, attention: str | None = None) -> Any:
    """With the same random weights each time. Raises ValueError where it is too large, else whatever the library raises."""
    made, maker = configuration(name), cast("Any", AutoModelForCausalLM)
    with torch.device("meta"):
        size = maker.from_config(made).num_parameters()
    if size > _MOST:
        raise ValueError(f"{size:,} weights")
    chosen = {"attn_implementation": attention} if attention else {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network: Any = maker.from_config(made, **chosen).eval()
    _randomise(network)
    return network


def _randomise(network: Any) -> None:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weights in network.parameters():
            if not weights.is_floating_point():
                continue
            drawn = torch.randn(weights.shape, generator=generator).to(weights.dtype)
            if weights.dim() > 1:
                weights.copy_(drawn * _WEIGHTS_SPREAD)
            else:
                weights.add_(drawn * 0.1)


def tokenizer() -> Any:
    made = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="<unk>"))
    made.pre_tokenizer = WhitespaceSplit()
    made.add_special_tokens(list(SPECIAL))
    made.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", BEGIN)])
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", bos_token="<bos>", eos_token="<eos>")
