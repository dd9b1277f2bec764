from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForMultimodalLM,
    LlamaConfig,
    T5Config,
)

from gnothi.errors import ModelUnavailable
from gnothi.models import load_model
from gnothi.models.engine.loading import load, weights_of
from gnothi.models.engine.multimodal import is_multimodal, keep_text
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.types import Decoding, Prompt, StateSpec, Task
from tests.messages import refused
from tests.models.tiny import VOCABULARY, build_tokenizer

AS_IT_IS = ModelSettings(device="cpu", pack_weights=False)
TEXT: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
# As many layers as the text part has.
SIGHT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": 28}
SIGHT |= {"patch_size": 14}
QWEN = {"depth": 4, "hidden_size": 32, "out_hidden_size": 32, "num_heads": 4, "intermediate_size": 48}
MARKS = {"image_token_id": 60, "video_token_id": 61, "vision_start_token_id": 62, "vision_end_token_id": 63}


def _turned(*sections: int) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(sections)}}


KINDS: dict[str, dict[str, Any]] = {
    "qwen2_vl": {
        "text_config": TEXT | _turned(1, 1, 2),
        "vision_config": {"depth": 4, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "mlp_ratio": 2},
        **MARKS,
    },
    "qwen2_5_vl": {
        "text_config": TEXT | _turned(1, 1, 2),
        "vision_config": QWEN | {"fullatt_block_indexes": [1]},
        **MARKS,
    },
    "qwen3_vl": {
        "text_config": TEXT | {"head_dim": 8} | _turned(2, 1, 1),
        "vision_config": QWEN | {"deepstack_visual_indexes": [0], "num_position_embeddings": 16},
        **MARKS,
    },
    "gemma3": {
        "text_config": TEXT | {"head_dim": 8, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2},
        "vision_config": SIGHT,
        "mm_tokens_per_image": 4,
        "image_token_index": 60,
    },
    "llava": {
        "text_config": TEXT | {"model_type": "llama"},
        "vision_config": SIGHT | {"model_type": "clip_vision_model"},
        "image_token_index": 60,
    },
    "mistral3": {
        "text_config": TEXT | {"model_type": "mistral", "head_dim": 8},
        "vision_config": SIGHT | {"model_type": "pixtral", "head_dim": 8},
        "image_token_index": 60,
    },
    "idefics3": {"text_config": TEXT | {"model_type": "llama"}, "vision_config": SIGHT, "image_token_id": 60},
    "qwen2_audio": {
        "text_config": TEXT | {"model_type": "qwen2"},
        "audio_config": {
            "d_model": 32,
            "encoder_layers": 4,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "num_mel_bins": 16,
        },
        "audio_token_index": 60,
    },
}
PREFIX = {
    "text_config": TEXT | {"model_type": "gemma", "head_dim": 8},
    "vision_config": SIGHT | {"model_type": "siglip_vision_model"},
    "image_token_index": 60,
    "projection_dim": 32,
}


def build(kind: str, config: dict[str, Any]) -> Any:
    make: Any = CONFIG_MAPPING[kind]
    auto: Any = AutoModelForMultimodalLM
    with torch.random.fork_rng():
        torch.manual_seed(7)
        return auto.from_config(make(**config)).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    def make(kind: str) -> Path:
        place = tmp_path_factory.getbasetemp() / f"multimodal-{kind}"
        if not place.exists():
            build(kind, KINDS[kind]).save_pretrained(place)
            build_tokenizer().save_pretrained(place)
        return place

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_part_says_what_the_whole_says(kind: str, folder: Callable[[str], Path]) -> None:
    whole = build(kind, KINDS[kind])
    model, tokenizer, _ = load(str(folder(kind)), kind, AS_IT_IS)
    ids = torch.tensor([[2, *range(10, 50), 7, 9]])
    with torch.inference_mode():
        torch.testing.assert_close(model(input_ids=ids).logits, whole(input_ids=ids).logits)
    assert sum(one.numel() for one in model.parameters()) < sum(one.numel() for one in whole.parameters())
    names = {name for name, one in model.named_modules() if list(one.parameters())}
    assert not [name for name in names if "vis" in name or "audio" in name]
    backend = TransformersBackend(model, tokenizer, _Raw(), name=kind, settings=AS_IT_IS)
    assert backend.metadata["part"] == "text"
    layers = model.get_decoder().layers
    assert list(backend._network.hooks.layers) == list(layers)


class _Raw:
    name, special_tokens = "raw", True

    def render(self, prompt: Prompt) -> str:
        return prompt.question


async def test_one_answers_and_has_states(folder: Callable[[str], Path]) -> None:
    model = load_model(str(folder("qwen2_vl")), ModelSettings(device="cpu", renderer="plain"))
    found = await model.sample(Prompt(Task("answer"), "who is w1 ?"), 2, Decoding(max_tokens=4, temperature=1.0), [StateSpec()])
    assert found.states[0].shape == (2, 32)
    await model.aclose()


async def test_a_chat_template_beside_the_tokenizer(folder: Callable[[str], Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder("llava"), tmp_path / "copy"))
    written = "{% for one in messages %}<{{ one.role }}>{% for part in one.content if part.type == 'text' %}{{ part.text }}"
    (copy / "chat_template.json").write_text(json.dumps({"chat_template": written + "{% endfor %}{% endfor %}"}))
    model = load_model(str(copy), ModelSettings(device="cpu"))
    assert model.metadata["renderer"] == "chat"
    await model.aclose()


def test_what_sees_may_be_missing_where_it_is_let_go(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """As of a model that was loaded here, trained and saved."""
    model, tokenizer, _ = load(str(folder("llava")), "llava", AS_IT_IS)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _, _ = load(str(tmp_path), "again", AS_IT_IS)
    for key, one in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[key], one)
    file = tmp_path / "model.safetensors"
    kept = {key: one for key, one in load_file(file).items() if "language_model" not in key or "layers.2" not in key}
    save_file(kept, file, {"format": "pt"})
    with refused(ModelUnavailable):
        load(str(tmp_path), "again", AS_IT_IS)


def test_one_that_reads_in_both_directions_is_refused() -> None:
    with refused(ModelUnavailable):
        keep_text(build("paligemma", PREFIX), "prefix")


def test_one_that_needs_an_image_is_refused() -> None:
    model = build("llava", KINDS["llava"])
    usual = model.forward
    model.forward = lambda pixel_values, **given: usual(pixel_values=pixel_values, **given)
    with refused(ModelUnavailable):
        keep_text(model, "seeing")


def test_a_part_that_is_needed_stays() -> None:
    model = build("llava", KINDS["llava"])
    usual = model.forward

    def forward(**given: Any) -> Any:
        assert list(model.model.vision_tower.parameters())
        return usual(**given)

    model.forward = forward
    assert keep_text(model, "whole") == []
    assert list(model.model.vision_tower.parameters())


def test_which_are_multimodal(folder: Callable[[str], Path]) -> None:
    config = AutoConfig.from_pretrained(folder("gemma3"))
    assert is_multimodal(config)
    assert not is_multimodal(config.get_text_config())
    assert not is_multimodal(LlamaConfig())
    assert not is_multimodal(T5Config())
    assert weights_of(config) == build("gemma3", KINDS["gemma3"]).num_parameters()
