"""A small random Llama as a GGUF file, as llama.cpp's converter would write it."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray

from tests.models.tiny import build_model

TEMPLATE = "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}{% endfor %}"
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write(path: Path, architecture: str = "llama") -> Any:
    """The model that the file holds."""
    model = build_model("llama")
    config = model.config
    writer: Any = GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    tokens = ["<pad>", "<unk>", "<bos>", "<eos>", *string.ascii_letters, *"Ġ.?:<>,", "ab"]
    assert len(tokens) == config.vocab_size
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 4 + [1] * (len(tokens) - 4))
    writer.add_token_merges(["a b", "a b"])  # earlier versions of transformers take one alone for a text
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_chat_template(TEMPLATE)
    for name, values in model.state_dict().items():
        numbers = values.numpy()
        if "q_proj" in name or "k_proj" in name:
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            numbers = _interleaved(numbers, heads)
        writer.add_tensor(_renamed(name), np.ascontiguousarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _renamed(name: str) -> str:
    layer, rest = "", name.removesuffix(".weight")
    if rest.startswith("model.layers."):
        number, _, rest = rest.removeprefix("model.layers.").partition(".")
        layer = f"blk.{number}."
    return f"{layer}{_NAMES[rest]}.weight"


def _interleaved(weights: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """As the converter reorders what rotates: pairs side by side."""
    rows, columns = weights.shape
    return weights.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
