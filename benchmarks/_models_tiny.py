"""Tiny random models of every causal family that the installed transformers has, and a tokenizer of invented words for them.

A configuration is made of its family's defaults with small numbers in place of large ones, wherever it has such a number; a few
families need more, and some are made in several variants, because what a family can do is more than what its defaults say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

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

_SMALL: Mapping[str, Any] = {
    "vocab_size": len(VOCABULARY), "pad_token_id": 0, "bos_token_id": BEGIN, "eos_token_id": END,
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "word_embed_proj_dim", "embedding_size", "attention_hidden_size", "dim_model", "emb_dim", "lru_width"), 32),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "block_ff_dim", "ffn_hidden_size", "dim_ff", "dff", "intermediate_size_mlp", "dense_intermediate_size", "decoder_ffn_dim", "encoder_ffn_dim", "mlp_hidden_size"), 48),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads"), 2),
    **dict.fromkeys(("head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "dim_head", "swa_head_dim", "attention_head_dim", "kv_channels", "swa_v_head_dim", "global_head_dim", "index_head_dim", "query_pre_attn_scalar"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "context_length", "max_sequence_length"), 512),
    **dict.fromkeys(("sliding_window", "window_size", "attention_chunk_size", "attention_window_size", "sliding_window_size", "local_attention"), WINDOW),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 6),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "expert_ffn_hidden_size", "shared_intermediate_size", "q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(("n_shared_experts", "first_k_dense_replace", "n_group", "topk_group", "num_shared_experts", "moe_num_shared_experts"), 1),
    **dict.fromkeys(("linear_num_key_heads",), 2), **dict.fromkeys(("linear_num_value_heads",), 4),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8),
    "rotary_dim": 4, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 5.0, "initializer_range": _WEIGHTS_SPREAD,
    **dict.fromkeys(("state_size", "mamba_d_state", "ssm_state_size"), 8), **dict.fromkeys(("chunk_size", "mamba_chunk_size"), 8),
    **dict.fromkeys(("mamba_d_head", "mamba_headdim", "mamba_head_dim"), 8), **dict.fromkeys(("mamba_n_heads", "n_mamba_heads", "mamba_num_heads"), 8),
    **dict.fromkeys(("mamba_n_groups", "n_groups", "mamba_ngroups"), 1), "mamba_dt_rank": 4, "time_step_rank": 4,
    **dict.fromkeys(("vocab_size_per_layer_input", "moe_vocab_size"), len(VOCABULARY)), "hidden_size_per_layer_input": 8,
    "type_vocab_size": 2,
}  # fmt: skip

_WINDOWS = ["sliding_attention", "full_attention"] * (LAYERS // 2)
_FULL = ["full_attention"] * LAYERS


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10_000.0, "rope_type": kind, **more}}


_LONG = {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "original_max_position_embeddings": 32, "factor": 16.0}
