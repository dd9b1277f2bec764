"""A small random Llama as a GGUF file, as llama.cpp's converter would write it."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from gguf import GGUFWriter

from benchmarks._llama import describe, tensors
from tests.models.tiny import build_model

TURN_END = 56
TEMPLATE = "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}{% endfor %}"


def write(path: Path, architecture: str = "llama") -> Any:
    """The model that the file holds."""
    model = build_model("llama")
    config = model.config
    writer: Any = GGUFWriter(path, architecture)
    describe(writer, config)
    tokens = ["<pad>", "<unk>", "<bos>", "<eos>", *string.ascii_letters, *"Ġ.?:<>,", "ab"]
    assert len(tokens) == config.vocab_size
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 4 + [1] * (len(tokens) - 4))
    writer.add_token_merges(["a b", "a b"])  # earlier versions of transformers take one alone for a text
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(3)
    writer.add_eot_token_id(TURN_END)
    writer.add_chat_template(TEMPLATE)
    for name, values in tensors(model):
        writer.add_tensor(name, values.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model
