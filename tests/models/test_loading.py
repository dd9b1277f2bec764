from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, ViTConfig, ViTModel

from gnothi.errors import InvalidSetting, MissingDependency, ModelUnavailable, UsageError
from gnothi.models import ModelSettings, load_model
from gnothi.models.engine import loading
from gnothi.models.engine.loading import load_arguments, weights_of
from gnothi.models.engine.packed import available
from gnothi.models.generation_config import alters, draws, not_followed
from gnothi.protocols import LanguageModel
from gnothi.types import Decoding, Prompt, StateSpec, Task
from tests.messages import refused

PROMPT = Prompt(Task("answer"), "who is w1 ?")
CPU = ModelSettings(device="cpu")


@pytest.fixture(scope="session")
def saved(llama: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    llama.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "gnothi.json").write_text('{"renderer": "tagged"}')
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    for path in saved.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_the_weights_of_a_configuration_are_counted_without_making_it(saved: Path) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(saved)
    assert weights_of(AutoConfig.from_pretrained(saved)) == model.num_parameters()
    assert weights_of(ViTConfig()) is None


async def test_a_folder_gives_a_seeded_traced_model_that_says_how_it_runs(
    saved: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = load_model(str(saved), CPU)
    assert capfd.readouterr() == ("", "")
    assert isinstance(model, LanguageModel)
    assert model.metadata == {
        "model": str(saved),
        "architecture": "LlamaForCausalLM",
        "device": "cpu",
        "dtype": "float32",
        "layers": "2",
        "renderer": "tagged",
        "attention": "forked",
        "trial": "forked equals plain passes in 2 layers",
        "ffn": "mlp",
        **({"linear": "packed"} if available() else {}),
        "prefix_cache_mb": "4",
    }
    size = sum(one.numel() for one in AutoModelForCausalLM.from_pretrained(saved).parameters())
    parameters = model.profile.parameters
    assert parameters is not None
    assert 0.5 * size <= parameters <= 1.1 * size
    warm = Decoding(max_tokens=8, temperature=1.0)
    first, second = await model.sample(PROMPT, 3, warm, [StateSpec()]), await model.sample(PROMPT, 3, warm)
    for one, other in zip(first.generations, second.generations, strict=True):  # read once, and once kept: digits may differ
        assert [token.id for token in one.tokens] == [token.id for token in other.tokens]
        assert [token.logprob for token in one.tokens] == pytest.approx([token.logprob for token in other.tokens], abs=1e-5)
    await model.aclose()


@pytest.mark.parametrize("asked", [True, False])
async def test_weights_are_laid_out_once_unless_told_otherwise(saved: Path, asked: bool) -> None:
    model = load_model(str(saved), ModelSettings(device="cpu", pack_weights=asked))
    assert ("linear" in model.metadata) == (asked and available())
    await model.aclose()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-6), ("bfloat16", 0.2)])
async def test_precision(saved: Path, dtype: Any, tolerance: float) -> None:
    models = [load_model(str(saved), ModelSettings(device="cpu", dtype=kind)) for kind in ("float32", dtype)]
    assert models[1].metadata["dtype"] == dtype
    continuations = ["Yes", "w1 w2 w3"]
    exact, other = [await model.score(PROMPT, continuations) for model in models]
    assert other[1].logprob == pytest.approx(exact[1].logprob, abs=3 * tolerance)
    samples = await models[1].sample(PROMPT, 4, Decoding(max_tokens=5, temperature=1.0), [StateSpec()])
    assert samples.states[0].shape == (4, 32)
    for model in models:
        await model.aclose()


async def test_bfloat16_where_it_is_slow_is_told(
    saved: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gnothi.models.engine.precision.loss", lambda *_: 7.4)
    for dtype in ("auto", "float32", "bfloat16"):
        await load_model(str(saved), ModelSettings(device="cpu", dtype=dtype)).aclose()
    (message,) = (record.getMessage() for record in caplog.records)
    assert "in bfloat16 takes about 7 times as long" in message
    assert "model.dtype=float32" in message


def test_the_setting_wins_over_the_folders_renderer(folder: Path) -> None:
    assert load_model(str(folder), ModelSettings(device="cpu", renderer="plain")).metadata["renderer"] == "plain"
    (folder / "gnothi.json").unlink()
    assert load_model(str(folder), CPU).metadata["renderer"] == "plain"
    (folder / "gnothi.json").write_text('{"renderer": "odd"}')
    with refused(InvalidSetting):
        load_model(str(folder), CPU)


def test_the_folder_may_list_the_tasks_the_model_was_taught(folder: Path) -> None:
    assert load_model(str(folder), CPU).profile.tasks is None
    (folder / "gnothi.json").write_text('{"tasks": ["answer", "reason"]}')
    assert load_model(str(folder), CPU).profile.tasks == frozenset({"answer", "reason"})


@pytest.mark.parametrize("declaration", ["{", "[]", ""])
def test_an_unreadable_declaration_is_named(folder: Path, declaration: str) -> None:
    (folder / "gnothi.json").write_text(declaration)
    with refused(ModelUnavailable):
        load_model(str(folder), CPU)


def test_a_model_without_an_end_token_still_samples(folder: Path) -> None:
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**content, "eos_token_id": None, "eos_token": None}))
    special = folder / "special_tokens_map.json"
    special.unlink(missing_ok=True)

    async def ask() -> None:
        model = load_model(str(folder), CPU)
        decoding = Decoding(max_tokens=4, temperature=1.0)
        with refused(UsageError):
            await model.sample(PROMPT, 2, decoding, [StateSpec()])
        samples = await model.sample(PROMPT, 2, decoding, [StateSpec(position="predicting")])
        assert [one.finish for one in samples.generations] == ["length", "length"]
        await model.aclose()

    import asyncio

    asyncio.run(ask())


def test_what_can_be_no_name_of_a_model() -> None:
    with refused(ModelUnavailable):
        load_model("lab[[")


@pytest.mark.parametrize("spec", ["./nowhere", "/no/such/folder", "~/no-such-folder", "a/b/c"])
def test_a_missing_folder(spec: str) -> None:
    with refused(ModelUnavailable):
        load_model(spec)


def test_a_file_and_a_folder_of_something_else(tmp_path: Path) -> None:
    with refused(ModelUnavailable):
        load_model(str(tmp_path))
    (tmp_path / "file").write_text("x")
    with refused(ModelUnavailable):
        load_model(str(tmp_path / "file"))


def test_damaged_weights_or_configuration(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with refused(ModelUnavailable):
        load_model(str(folder), CPU)
    (folder / "config.json").write_text("{")
    with refused(ModelUnavailable):
        load_model(str(folder), CPU)


def test_a_tokenizer_without_a_longest_text(folder: Path) -> None:
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_max_length": "long"}))
    with refused(ModelUnavailable):
        load_model(str(folder), CPU)


def test_a_model_that_is_no_language_model(folder: Path) -> None:
    ViTModel(ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)).save_pretrained(
        folder
    )
    with refused(ModelUnavailable, varies=r"(?s)(?<=': ).*(?=\. Expected 'lab')"):
        load_model(str(folder), CPU)


@pytest.mark.parametrize("known", [True, False])
def test_code_that_comes_with_a_model_is_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    """Nor is it asked for on the terminal, as the library would."""
    config = json.loads((folder / "config.json").read_text())
    kind = {} if known else {"model_type": "evil", "architectures": ["EvilForCausalLM"]}
    classes = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model", "AutoTokenizer": ["evil.Tokenizer", None]}
    (folder / "config.json").write_text(json.dumps(config | kind | {"auto_map": classes}))
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    if known:  # the library has code of its own for it
        assert load_model(str(folder), CPU).metadata["architecture"] == "LlamaForCausalLM"
    else:
        with refused(ModelUnavailable):
            load_model(str(folder), CPU)


def test_a_hub_id_that_cannot_be_reached_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    with refused(ModelUnavailable):
        load_model("nobody/nothing")


def test_no_name() -> None:
    with refused(UsageError):
        load_model(" ")


def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with refused(MissingDependency):
        load_model("nobody/nothing")


@pytest.mark.parametrize("layers", [-1, 0, 10**80, 1.5])
def test_a_configuration_that_cannot_be_meant_is_refused_before_layers_are_made(folder: Path, layers: float) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": layers}))
    with refused(ModelUnavailable):
        load_model(str(folder), CPU)


def test_what_generation_settings_ask_for_is_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = folder / "generation_config.json"
    plain = json.loads(file.read_text())
    load_model(str(folder), CPU)
    file.write_text(json.dumps(plain | {"temperature": 0.6, "do_sample": True}))
    assert load_model(str(folder), CPU).metadata["generation_config"] == "left to methods: temperature=0.6"
    assert not caplog.messages
    file.write_text(json.dumps(plain | {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2}))
    model = load_model(str(folder), CPU)
    assert model.metadata["generation_config"] == "not followed: repetition_penalty=1.3, no_repeat_ngram_size=2"
    (message,) = caplog.messages
    assert "asks for repetition_penalty=1.3, no_repeat_ngram_size=2, which is not followed" in message


def test_older_models_have_them_in_their_configuration(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "generation_config.json").unlink()
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"repetition_penalty": 1.3}))
    assert load_model(str(folder), CPU).metadata["generation_config"] == "not followed: repetition_penalty=1.3"
    assert "repetition_penalty=1.3" in caplog.text


@pytest.mark.parametrize("content", ["{", "", '{"eos_token_id": "end"}'])
def test_generation_settings_that_cannot_be_read(folder: Path, content: str) -> None:
    """Else the library would put its own in their place, and replies would end elsewhere."""
    (folder / "generation_config.json").write_text(content)
    with refused(ModelUnavailable):
        load_model(str(folder), CPU)


GenerationConfig: Any = transformers.GenerationConfig


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"repetition_penalty": 1.1}, "repetition_penalty=1.1"),
        ({"no_repeat_ngram_size": 3, "num_beams": 4, "min_length": 56}, "no_repeat_ngram_size=3, min_length=56, num_beams=4"),
        ({"bad_words_ids": [[5], [6, 7]]}, "bad_words_ids=[[5], [6, 7]]"),
        ({"suppress_tokens": list(range(90))}, f"suppress_tokens={str(list(range(90)))[:60]}..."),
        ({"presence_penalty": 1.5}, "presence_penalty=1.5"),  # of other programs
        ({"stop_strings": ["\n"], "sequence_bias": [[[5], -1.0]]}, r'sequence_bias=[[[5], -1.0]], stop_strings=["\n"]'),
        ({"repetition_penalty": 1.0, "num_beams": 1, "no_repeat_ngram_size": 0, "suppress_tokens": []}, ""),
        ({"eos_token_id": [2, 3], "pad_token_id": 0, "forced_bos_token_id": 4, "max_length": 20, "use_cache": False}, ""),
        ({"temperature": 0.6, "do_sample": True}, ""),
    ],
)
def test_what_would_alter_replies(given: dict[str, Any], said: str) -> None:
    assert alters(GenerationConfig(**given)) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}, "temperature=0.6, top_k=20, top_p=0.95"),
        ({"temperature": 1.0, "top_p": 1.0, "top_k": 0}, ""),
        ({"repetition_penalty": 1.1}, ""),
    ],
)
def test_how_tokens_would_be_drawn(given: dict[str, Any], said: str) -> None:
    assert draws(GenerationConfig(**given)) == said


def test_for_metadata() -> None:
    assert not_followed(None) == not_followed(GenerationConfig()) == {}
    both = GenerationConfig(repetition_penalty=1.05, temperature=0.7)
    assert not_followed(both) == {
        "generation_config": "not followed: repetition_penalty=1.05; left to methods: temperature=0.7"
    }


def arguments(cuda: bool = True, **settings: Any) -> tuple[str, dict[str, Any]]:
    return load_arguments(ModelSettings(**settings), "some", cuda)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: name)


@pytest.mark.parametrize(
    ("cuda", "settings", "device", "dtype"),
    [
        (True, {}, "cuda", "bfloat16"),
        (False, {}, "cpu", "float32"),
        (True, {"device": "cpu"}, "cpu", "float32"),
        (False, {"dtype": "bfloat16"}, "cpu", "bfloat16"),
    ],
)
def test_device_and_precision(cuda: bool, settings: dict[str, Any], device: str, dtype: str) -> None:
    assert arguments(cuda, **settings) == (device, {"dtype": dtype, "trust_remote_code": False})


@pytest.mark.usefixtures("everything")
def test_quantised() -> None:
    _, given = arguments(quantize="8bit")
    assert given["quantization_config"] == {"quant_method": "bitsandbytes", "load_in_8bit": True}
    assert given["device_map"] == {"": 0}
    _, given = arguments(quantize="4bit", device_map="balanced", dtype="float32")
    assert given["device_map"] == "balanced"
    assert given["quantization_config"] == {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_compute_dtype": "float32",
    }


@pytest.mark.usefixtures("everything")
def test_the_library_understands_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.quantizers.auto import AutoQuantizationConfig

    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.49.0")
    made = AutoQuantizationConfig.from_dict(arguments(quantize="4bit")[1]["quantization_config"])
    assert (made.load_in_4bit, made.load_in_8bit) == (True, False)
    assert (made.bnb_4bit_quant_type, made.bnb_4bit_compute_dtype) == ("nf4", torch.bfloat16)


@pytest.mark.usefixtures("everything")
def test_spread() -> None:
    assert arguments(device_map="auto")[1]["device_map"] == "auto"


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("settings", [{"quantize": "4bit"}, {"device_map": "auto"}])
@pytest.mark.parametrize("where", [{"cuda": False}, {"cuda": True, "device": "cpu"}])
def test_without_a_gpu(settings: dict[str, Any], where: dict[str, Any]) -> None:
    with refused(InvalidSetting):
        arguments(**settings, **where)


@pytest.mark.parametrize(
    ("settings", "package"), [({"quantize": "8bit"}, "bitsandbytes"), ({"device_map": "auto"}, "accelerate")]
)
def test_without_the_package(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], package: str) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None if name == package else name)
    with refused(MissingDependency):
        arguments(**settings)


def test_a_device_that_is_not_there() -> None:
    with refused(ModelUnavailable):
        arguments(False, device="cuda")
