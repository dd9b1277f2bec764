from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import IA3Config, LoraConfig, PrefixTuningConfig, PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.models import ModelSettings, check_model, load_model
from gnothi.models.engine.loading import load
from gnothi.models.engine.unchanged import TOKENS, ReferenceLogits
from gnothi.models.identity import content, identify
from gnothi.types import Decoding, Prompt, Task
from gnothi.weights import ADAPTER
from tests.messages import refused
from tests.models.tiny import build_deep, build_seq2seq, build_tokenizer

AS_IT_IS = ModelSettings(device="cpu", pack_weights=False)
LORA: dict[str, Any] = {"r": 4, "lora_alpha": 8, "task_type": "CAUSAL_LM"}
EVERY = LoraConfig(**LORA, target_modules="all-linear")


def save(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(build_deep("llama"), tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = build_deep("llama")
    model.config.tie_word_embeddings = True
    model.tie_weights()
    return save(model, tmp_path_factory.mktemp("tied"))


def wrapped(model: Any, config: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries say to each other
        return get_peft_model(model, config)


def adapt(base: Path, folder: Path, config: Any = EVERY, change: Callable[[Any], object] = id) -> Any:
    """Writes an adapter of random numbers; the model with it."""
    model: Any = AutoModelForCausalLM.from_pretrained(base)
    change(model)
    adapted = wrapped(model, config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for one in adapted.parameters():
            if one.requires_grad:
                one.add_(torch.randn(one.shape, generator=generator) * 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted.save_pretrained(folder)
    return adapted.eval()


def rebase(folder: Path, base: object) -> None:
    file = folder / ADAPTER
    file.write_text(json.dumps(json.loads(file.read_text()) | {"base_model_name_or_path": base}))


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=torch.tensor([[2, 10, 20, 30, 40, 50, 12]])).logits
    return found


@pytest.mark.parametrize(
    "config",
    [
        EVERY,
        LoraConfig(**LORA, target_modules=["q_proj", "v_proj"], use_dora=True),
        LoraConfig(r=2, target_modules=["down_proj"]),
        LoraConfig(**LORA, target_modules=["q_proj"], modules_to_save=["lm_head", "embed_tokens"]),
        IA3Config(task_type="CAUSAL_LM", target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    ],
)
def test_an_adapter_is_within_the_weights(base: Path, tmp_path: Path, config: Any) -> None:
    adapted = adapt(base, tmp_path, config)
    model, tokenizer, _ = load(str(tmp_path), "tiny", AS_IT_IS)
    torch.testing.assert_close(logits(model), logits(adapted), atol=1e-4, rtol=1e-4)
    assert {type(one).__module__.split(".")[0] for one in model.modules()} == {"torch", "transformers"}
    assert len(tokenizer) == len(build_tokenizer())


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_a_change_of_one_of_two_that_share_weights_stays_apart(tied: Path, tmp_path: Path, target: str) -> None:
    adapted = adapt(tied, tmp_path, LoraConfig(**LORA, target_modules=["q_proj", target]))
    model, _, _ = load(str(tmp_path), "tiny", AS_IT_IS)
    torch.testing.assert_close(logits(model), logits(adapted), atol=1e-4, rtol=1e-4)


def test_one_that_works_only_behind_certain_tokens(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path, LoraConfig(**LORA, target_modules=["q_proj"], alora_invocation_tokens=[30, 40]))
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", AS_IT_IS)


def test_tokens_that_were_added(base: Path, tmp_path: Path) -> None:
    adapted = adapt(base, tmp_path, change=lambda model: model.resize_token_embeddings(70))
    tokenizer = build_tokenizer()
    tokenizer.add_tokens([f"new{number}" for number in range(6)])
    tokenizer.save_pretrained(tmp_path)
    model, spoken, _ = load(str(tmp_path), "tiny", AS_IT_IS)
    assert len(spoken) == len(model.get_input_embeddings().weight) == 70
    torch.testing.assert_close(logits(model), logits(adapted), atol=1e-4, rtol=1e-4)
    file = tmp_path / "adapter_model.safetensors"
    save_file({key: one for key, one in load_file(file).items() if "lm_head.weight" not in key}, file)
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", AS_IT_IS)


def test_of_a_sequence_to_sequence_model(tmp_path: Path) -> None:
    base = save(build_seq2seq("t5"), tmp_path / "base")
    adapted = wrapped(build_seq2seq("t5"), LoraConfig(r=2, target_modules=["q", "v"], task_type="SEQ_2_SEQ_LM"))
    with torch.no_grad():
        for key, one in adapted.named_parameters():
            if "lora_B" in key:
                one.add_(0.1)
    adapted.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
    rebase(tmp_path / "adapter", str(base))
    model, _, _ = load(str(tmp_path / "adapter"), "tiny", AS_IT_IS)
    given = {"input_ids": torch.tensor([[5, 6, 7]]), "decoder_input_ids": torch.tensor([[0, 8, 9]])}
    with torch.inference_mode():
        torch.testing.assert_close(model(**given).logits, adapted.eval()(**given).logits, atol=1e-4, rtol=1e-4)


def test_the_base_is_found_as_it_is_named_or_beside(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path)
    shutil.copytree(base, tmp_path / "below")
    rebase(tmp_path, "below")
    load(str(tmp_path), "tiny", AS_IT_IS)
    shutil.copy(base / "config.json", tmp_path)  # as some trainings leave
    load(str(tmp_path), "tiny", AS_IT_IS)


def test_it_is_another_model_with_another_base(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path / "adapter")
    shutil.copytree(base, tmp_path / "same")
    save(build_deep("qwen3"), tmp_path / "other")
    mine = str(tmp_path / "adapter")
    before = identify(mine), content(mine)
    rebase(tmp_path / "adapter", str(tmp_path / "other"))
    assert not identify(mine).same(before[0])
    assert content(mine) != before[1]
    assert identify(mine).fingerprint.endswith(identify(str(tmp_path / "other")).fingerprint)
    assert not identify(mine).same(identify(str(tmp_path / "other")))


@pytest.mark.parametrize("kind", [PromptTuningConfig, PrefixTuningConfig])
def test_one_that_changes_no_weights(base: Path, tmp_path: Path, kind: Any) -> None:
    adapt(base, tmp_path, kind(task_type="CAUSAL_LM", num_virtual_tokens=3))
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", AS_IT_IS)


@pytest.mark.parametrize("named", ["/gone/away", None, "", 3])
def test_a_base_that_is_not_there(base: Path, tmp_path: Path, named: object) -> None:
    adapt(base, tmp_path)
    rebase(tmp_path, named)
    for call in (lambda: check_model(str(tmp_path), on_the_hub=False), lambda: load(str(tmp_path), "tiny", AS_IT_IS)):
        with refused(ModelUnavailable):
            call()


@pytest.mark.parametrize("content", ["{", "[]", "3", '"x"'])
def test_a_description_that_cannot_be_read(base: Path, tmp_path: Path, content: str) -> None:
    adapt(base, tmp_path)
    (tmp_path / ADAPTER).write_text(content)
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", AS_IT_IS)


def test_an_adapter_of_an_adapter(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path / "first")
    adapt(base, tmp_path / "second")
    for one, other in (("first", "second"), ("second", "first"), ("second", "second")):
        rebase(tmp_path / one, str(tmp_path / other))
        with refused(ModelUnavailable):
            check_model(str(tmp_path / one))
        assert identify(str(tmp_path / one)).fingerprint


def test_an_adapter_among_the_weights_of_a_model(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path)
    shutil.copy(base / "model.safetensors", tmp_path)
    with refused(ModelUnavailable):
        check_model(str(tmp_path))


def test_one_that_is_not_whole(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path)
    file = tmp_path / "adapter_model.safetensors"
    weights = load_file(file)
    save_file({key: one for key, one in weights.items() if "layers.1.mlp.up_proj.lora_B" not in key}, file)
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", AS_IT_IS)
    file.write_bytes(file.read_bytes()[:500])
    with refused(ModelUnavailable):
        load(str(tmp_path), "tiny", AS_IT_IS)
    file.unlink()
    with refused(ModelUnavailable):
        check_model(str(tmp_path))


def test_a_base_of_another_kind(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path / "adapter")
    model = build_deep("llama")
    for what, change in (
        ("flat", {"num_hidden_layers": 2}),
        ("deep", {"num_hidden_layers": 5}),
        ("wide", {"intermediate_size": 64}),
    ):
        save(type(model)(type(model.config)(**{**model.config.to_dict(), **change})), tmp_path / what)
        rebase(tmp_path / "adapter", str(tmp_path / what))
        with refused(ModelUnavailable):
            load(str(tmp_path / "adapter"), "tiny", AS_IT_IS)
    save(build_deep("gpt_neox"), tmp_path / "neox")
    rebase(tmp_path / "adapter", str(tmp_path / "neox"))
    with refused(ModelUnavailable):
        load(str(tmp_path / "adapter"), "tiny", AS_IT_IS)


def test_a_base_that_lacks_weights(base: Path, tmp_path: Path) -> None:
    adapt(base, tmp_path / "adapter")
    broken = shutil.copytree(base, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    save_file({key: one for key, one in weights.items() if "norm" not in key}, broken / "model.safetensors", {"format": "pt"})
    rebase(tmp_path / "adapter", str(broken))
    with refused(ModelUnavailable):
        load(str(tmp_path / "adapter"), "tiny", AS_IT_IS)


def test_without_peft(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapt(base, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with refused(MissingDependency):
        load(str(tmp_path), "tiny", AS_IT_IS)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache, with nothing behind it."""
    for where in ("huggingface_hub.constants", "transformers.utils.hub"):
        for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE"):
            monkeypatch.setattr(f"{where}.{name}", str(tmp_path / "hub") if name == "HF_HUB_CACHE" else True, raising=False)
    return tmp_path / "hub"


def test_one_of_the_hub(base: Path, hub: Path) -> None:
    place = hub / "models--someone--adapter"
    adapted = adapt(base, place / "snapshots" / ("0" * 40))
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("0" * 40)
    model, _, _ = load("someone/adapter", "tiny", AS_IT_IS)
    torch.testing.assert_close(logits(model), logits(adapted), atol=1e-4, rtol=1e-4)
    assert identify("someone/adapter").fingerprint == "0" * 40


@pytest.fixture
def cached(base: Path, hub: Path) -> str:
    """A model of the hub that is in the cache."""
    place = hub / "models--someone--model"
    shutil.copytree(base, place / "snapshots" / ("1" * 40))
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("1" * 40)
    return "someone/model"


async def test_replies_are_kept_for_adapter_and_base(
    base: Path, cached: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of either asks anew."""
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "kept"))
    said, prompt = [], Prompt(Task("answer"), "who is w1 ?")
    for config, changes in ((EVERY, cached), (LoraConfig(**LORA, target_modules=["down_proj"]), cached)):
        shutil.rmtree(tmp_path / "adapter", ignore_errors=True)
        adapt(base, tmp_path / "adapter", config)
        rebase(tmp_path / "adapter", changes)
        model = load_model(str(tmp_path / "adapter"), ModelSettings(device="cpu", cache="on"))
        said.append(await model.generate(prompt, Decoding(max_tokens=12)))
        await model.aclose()
    assert said[0].tokens != said[1].tokens


def test_a_plain_model_of_the_hub_that_is_cached(base: Path, cached: str) -> None:
    model, _, _ = load(cached, "tiny", AS_IT_IS)
    torch.testing.assert_close(logits(model), logits(AutoModelForCausalLM.from_pretrained(base)))


@pytest.mark.parametrize("make", [lambda: build_deep("llama"), lambda: build_seq2seq("t5")])
def test_a_change_is_noticed(make: Any) -> None:
    model = make().eval()
    said = ReferenceLogits(model)
    assert said.logits.shape[0] == TOKENS
    assert said.same()
    assert said.same(tokens=2)
    with torch.no_grad():
        model.get_output_embeddings().weight.add_(torch.randn_like(model.get_output_embeddings().weight))
    assert not said.same()
    assert ReferenceLogits(model).same()


def test_half_precision_is_none() -> None:
    model = build_deep("llama")
    said = ReferenceLogits(model)
    model.to(torch.bfloat16)
    assert said.same()


def test_tokens_that_the_configuration_names_are_left_alone() -> None:
    model = build_deep("llama")
    model.config.image_token_index = 40
    model.config.marks = {"begin": [33, 34], "end": None}
    read: list[int] = []
    model.register_forward_pre_hook(lambda _, __, named: read.extend(named["input_ids"][0].tolist()), with_kwargs=True)
    ReferenceLogits(model)
    assert len(read) == TOKENS
    assert not {0, 2, 3, 33, 34, 40} & set(read)
