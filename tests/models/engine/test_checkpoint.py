from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig
from transformers.models.mixtral import MixtralForCausalLM

from gnothi.errors import ModelUnavailable
from gnothi.models.engine.checkpoint import read
from gnothi.models.engine.loading import load
from gnothi.models.settings import ModelSettings
from tests.messages import refused
from tests.models.tiny import VOCABULARY, build_closing_tokenizer, build_deep, build_seq2seq, build_tokenizer

CPU = ModelSettings(device="cpu")
SHAPE: dict[str, Any] = {"vocab_size": len(VOCABULARY), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
Weights = dict[str, Tensor]
Change = Callable[[Weights], Mapping[str, Tensor]]


def save(model: Any, folder: Path, change: Change = dict, **options: Any) -> Path:
    """A folder whose weights were changed."""
    model.save_pretrained(folder, **options)
    (build_closing_tokenizer() if model.config.is_encoder_decoder else build_tokenizer()).save_pretrained(folder)
    if change is not dict:
        file = folder / "model.safetensors"
        save_file({key: one.clone().contiguous() for key, one in change(load_file(file)).items()}, file, {"format": "pt"})
    return folder


def without(part: str) -> Change:
    def change(weights: Weights) -> Weights:
        kept = {key: one for key, one in weights.items() if part not in key}
        assert len(kept) < len(weights)
        return kept

    return change


def more(**added: Tensor) -> Change:
    return lambda weights: {**weights, **{key.replace("__", "."): one for key, one in added.items()}}


def llama() -> Any:
    return build_deep("llama")


def gpt2() -> Any:
    """Its head is its embedding, and it was once saved with its masks."""
    return GPT2LMHeadModel(GPT2Config(**SHAPE, n_embd=16, n_layer=2, n_head=2))


def mixtral() -> Any:
    """What is one weight in the library is one for each expert in the file."""
    shape: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return MixtralForCausalLM(MixtralConfig(**SHAPE, **shape, num_key_value_heads=1, num_local_experts=3))


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (llama, "layers.2.mlp.down_proj"),
        (llama, "model.norm"),
        (llama, "lm_head"),
        (llama, "self_attn"),
        (gpt2, "h.1.attn.c_attn.bias"),
        (mixtral, "layers.1.block_sparse_moe.experts"),
        (mixtral, ".experts.2."),
        (lambda: build_seq2seq("t5"), "encoder.block.1.layer.0"),
        (lambda: build_seq2seq("bart"), "decoder.layers.0.fc1"),
    ],
)
def test_a_weight_that_is_missing_is_named(tmp_path: Path, make: Callable[[], Any], part: str) -> None:
    with refused(ModelUnavailable):
        load(str(save(make(), tmp_path, without(part))), "tiny", CPU)


def test_one_part_that_is_missing_of_a_weight_in_parts(tmp_path: Path) -> None:
    with refused(ModelUnavailable, varies=r"(?<=together )\(.*?\)(?=\. Copy)"):
        load(str(save(mixtral(), tmp_path, without("layers.1.block_sparse_moe.experts.1.w1"))), "tiny", CPU)


@pytest.mark.parametrize(
    "change",
    [
        more(extra__weight=torch.ones(3)),
        more(model__layers__7__mlp__up_proj__weight=torch.ones(48, 32)),
        more(model__layers__0__self_attn__q_proj__bias=torch.ones(32)),
        more(score__weight=torch.ones(2, 32)),
        more(lm_head__weight=torch.ones(9, 32)),
        lambda found: {f"net.{key}": one for key, one in found.items()},
        lambda _: {},
    ],
)
def test_a_weight_too_many_or_in_another_shape_is_named(tmp_path: Path, change: Change) -> None:
    with refused(ModelUnavailable):
        load(str(save(llama(), tmp_path, change)), "tiny", CPU)


@pytest.mark.parametrize("layers", [3, 5])
def test_a_configuration_of_another_model(tmp_path: Path, layers: int) -> None:
    file = save(llama(), tmp_path) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"num_hidden_layers": layers}))
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", CPU)


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (llama, more(model__layers__0__self_attn__rotary_emb__inv_freq=torch.ones(4))),
        (llama, more(mtp__layers__0__weight=torch.ones(4), v_head__summary__weight=torch.ones(1, 32))),
        (llama, more(vision_tower__patches__weight=torch.ones(4), model__visual__blocks__0__weight=torch.ones(2))),
        (gpt2, more(transformer__h__0__attn__bias=torch.ones(1, 1, 8, 8), transformer__h__0__attn__masked_bias=torch.ones(()))),
        (gpt2, lambda found: {key.removeprefix("transformer."): one for key, one in found.items()}),
        (lambda: LlamaForCausalLM(LlamaConfig(**SHAPE, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)), dict),
        (mixtral, dict),
        (lambda: build_seq2seq("t5"), dict),
        (lambda: build_seq2seq("bart"), without("final_logits_bias")),
    ],
)
def test_what_a_model_does_not_need_may_be_there_or_not(
    tmp_path: Path, make: Callable[[], Any], change: Change, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    model = make().eval()
    folder = save(model, tmp_path, change)
    capfd.readouterr()
    with caplog.at_level(logging.WARNING, "gnothi.opening"):
        loaded, _, _ = load(str(folder), "tiny", ModelSettings(device="cpu", pack_weights=False))
    for key, one in model.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[key], one)
    assert capfd.readouterr().err == ""
    assert not caplog.messages


def test_parts_beside_the_language_model_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = save(llama(), tmp_path, more(mtp__norm__weight=torch.ones(4), model__rotary_emb__inv_freq=torch.ones(4)))
    with caplog.at_level(logging.INFO, "gnothi.opening"):
        load(str(folder), "tiny", CPU)
    assert caplog.messages == ["tiny: its checkpoint also holds mtp.norm.weight, which text needs not"]


def test_what_quantised_weights_come_with(tmp_path: Path) -> None:
    folder = save(llama(), tmp_path, more(model__layers__0__mlp__up_proj__weight_scale_inv=torch.ones(2)))
    model, found = read(AutoModelForCausalLM, str(folder), {})
    with refused(ModelUnavailable):
        found.check(model, "tiny")
    model.config.quantization_config = {"quant_method": "fp8"}
    found.check(model, "tiny")


def test_weights_in_several_files(tmp_path: Path) -> None:
    folder = save(llama(), tmp_path, max_shard_size="40KB")
    files = sorted(folder.glob("model-*.safetensors"))
    assert len(files) > 2
    load(str(folder), "tiny", CPU)
    whole = files[1].read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"version https://git-lfs.github.com/spec/v1"):
        files[1].write_bytes(content)
        with refused(ModelUnavailable):
            load(str(folder), "tiny", CPU)
    files[1].unlink()
    with refused(ModelUnavailable):
        load(str(folder), "tiny", CPU)


def test_weights_that_torch_saved(tmp_path: Path) -> None:
    folder = save(llama(), tmp_path)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    load(str(folder), "tiny", CPU)
    torch.save(without("layers.1.mlp")(weights), folder / "pytorch_model.bin")
    with refused(ModelUnavailable):
        load(str(folder), "tiny", CPU)
    (folder / "pytorch_model.bin").write_bytes(b"PK")
    with refused(ModelUnavailable, varies=r"(?s)(?<=': ).*(?=\. Expected 'lab')"):
        load(str(folder), "tiny", CPU)


def test_the_librarys_log_is_as_it_was(tmp_path: Path) -> None:
    log = logging.getLogger("transformers.modeling_utils")
    before = (log.level, list(log.filters))
    read(AutoModelForCausalLM, str(save(llama(), tmp_path, without("norm"))), {})
    assert (log.level, list(log.filters)) == before
