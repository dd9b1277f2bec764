"""Random models of several architectures and a small tokenizer, built on the spot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from gnothi.models import ModelSettings
from gnothi.models.engine.packed import is_packed
from gnothi.models.engine.passes import Network
from gnothi.models.engine.trial import Verdict, settle
from gnothi.models.rendering import Tagged
from gnothi.models.transformers import TransformersBackend

SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>", "<question>", "<passage>", "<choices>", "<reason>", "<answer>", "<know>")
WORDS = (".", "?", ":", "/", "Yes", "No", "who", "where", "is", "the", "of", "city", *(f"w{number}" for number in range(42)))
VOCABULARY = (*SPECIAL, *WORDS)
CONTEXT = 256


def build_tokenizer() -> Any:
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<bos>", eos_token="<eos>")


_SHAPE: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": CONTEXT,
    # Wide enough that probabilities differ clearly between tokens, as a trained model's do.
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
_GROUPED: dict[str, Any] = {**_SHAPE, "num_key_value_heads": 2}
_WINDOWS: dict[str, Any] = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
_DEEP: dict[str, Any] = {"num_hidden_layers": 4}
_DEEP_WINDOWS: dict[str, Any] = {**_DEEP, "layer_types": 2 * _WINDOWS["layer_types"]}

ARCHITECTURES: dict[str, Callable[..., Any]] = {
    "llama": lambda **more: LlamaForCausalLM(LlamaConfig(**_GROUPED | more)),
    "qwen3": lambda **more: Qwen3ForCausalLM(Qwen3Config(**_GROUPED | more, head_dim=16)),
    "gemma3": lambda **more: Gemma3ForCausalLM(Gemma3TextConfig(**_GROUPED | _WINDOWS | more, head_dim=16)),
    "gpt_neox": lambda **more: GPTNeoXForCausalLM(GPTNeoXConfig(**_SHAPE | more)),
    "mistral": lambda **more: MistralForCausalLM(MistralConfig(**_GROUPED | more, head_dim=8, sliding_window=8)),
}
# vLLM's attention on a CPU takes heads of 32 and more.
_WIDE: dict[str, Any] = {**_GROUPED, **_DEEP, "head_dim": 32}
WIDE_ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_WIDE)),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**_WIDE | _WINDOWS | _DEEP_WINDOWS)),
    "gpt_neox": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**_SHAPE | _DEEP | {"hidden_size": 128})),
}


def build_model(architecture: str, dtype: torch.dtype = torch.float32, wide: bool = False) -> Any:
    return _seeded((WIDE_ARCHITECTURES if wide else ARCHITECTURES)[architecture]).to(dtype)


def build_deep(architecture: str, dtype: torch.dtype = torch.float32) -> Any:
    """Of four layers, so that a trial need not go through all of them."""
    return _seeded(ARCHITECTURES[architecture], **(_DEEP_WINDOWS if architecture == "gemma3" else _DEEP)).to(dtype)


def _seeded(build: Callable[..., Any], **more: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return build(**more).eval()


def build_closing_tokenizer() -> Any:
    """As T5's: it closes a text, and begins it with nothing."""
    built = build_tokenizer()
    built.backend_tokenizer.post_processor = TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 3)])
    return built


def build_seq2seq(kind: str) -> Any:
    """``t5`` or ``bart`` (whose decoder begins with a forced token)."""
    torch.manual_seed(0)
    common: dict[str, Any] = {"vocab_size": len(VOCABULARY), "pad_token_id": 0, "eos_token_id": 3, "tie_word_embeddings": False}
    if kind == "t5":
        common |= {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
        built: Any = T5ForConditionalGeneration(T5Config(**common))
    else:
        common |= {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": CONTEXT}
        common |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
        common |= {"bos_token_id": 2, "decoder_start_token_id": 3}
        built = BartForConditionalGeneration(BartConfig(**common))
        built.generation_config.forced_bos_token_id = 2
    for weights in built.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.4)  # as they come, every reply is one token over and over
    return built.eval()


_VERDICTS: dict[str, Verdict] = {}


def settled(network: Network, wanted: str = "auto") -> Verdict:
    """As ``trial.settle``, but a network of the same weights and configuration as one before has no trial of its own."""
    model = network.model
    about = [wanted, type(model).__qualname__, str(model.dtype), str(is_packed(model)), str(model.config._attn_implementation)]
    told = hashlib.blake2b("\n".join([*about, model.config.to_json_string(use_diff=False)]).encode())
    for name, weights in model.state_dict().items():
        told.update(name.encode())
        told.update(weights.double().numpy().tobytes())
    if told.hexdigest() not in _VERDICTS:
        _VERDICTS[told.hexdigest()] = settle(network, wanted)
    return _VERDICTS[told.hexdigest()]


def backend_of(model: Any, tokenizer: Any, **settings: Any) -> TransformersBackend:
    return TransformersBackend(model, tokenizer, Tagged(), name="tiny", settings=ModelSettings(**settings))
