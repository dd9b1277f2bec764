"""Which models take the forked path, and what a model that cannot is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GptOssConfig,
    GptOssForCausalLM,
    Llama4ForCausalLM,
    Llama4TextConfig,
    OPTConfig,
    OPTForCausalLM,
)

from gnothi.errors import InvalidSetting
from gnothi.models.batched import Continue, Score
from gnothi.models.engine.prompts import pool_width
from gnothi.models.rendering import Tagged, join
from gnothi.models.settings import Attention, ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.signals.kinds.self_report import KNOW
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, Network
from gnothi.types import ContinuationScore, Passage, Prompt, Samples
from tests.messages import refused
from tests.models.tiny import ARCHITECTURES, CONTEXT, VOCABULARY, backend_of, build_model

SHAPE: dict[str, Any] = {"vocab_size": len(VOCABULARY), "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
LAYERS: dict[str, Any] = {
    **SHAPE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.2,
}

OTHERS: dict[str, tuple[Callable[[], Any], str]] = {
    "gpt2": (lambda: GPT2LMHeadModel(GPT2Config(**SHAPE, n_embd=32, n_layer=2, n_head=4, initializer_range=0.2)), "forked"),
    "opt": (
        lambda: OPTForCausalLM(
            OPTConfig(**SHAPE, hidden_size=32, num_hidden_layers=2, ffn_dim=48, word_embed_proj_dim=32, num_attention_heads=4)
        ),
        "forked",
    ),
    "gemma2": (lambda: Gemma2ForCausalLM(Gemma2Config(**LAYERS, sliding_window=8)), "repeated"),
    "gpt_oss": (lambda: GptOssForCausalLM(GptOssConfig(**LAYERS, num_local_experts=2, num_experts_per_tok=1)), "repeated"),
    "bloom": (lambda: BloomForCausalLM(BloomConfig(**SHAPE, hidden_size=32, n_layer=2, n_head=4)), "repeated"),
    "llama4": (
        lambda: Llama4ForCausalLM(
            Llama4TextConfig(**LAYERS, attention_chunk_size=8, num_local_experts=2, intermediate_size_mlp=48)
        ),
        "repeated",
    ),
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_tested_architectures_fork(architecture: str, tokenizer: Any) -> None:
    backend = backend_of(build_model(architecture), tokenizer)
    assert backend.metadata["attention"] == "forked"
    assert "attention_reason" not in backend.metadata


@pytest.mark.parametrize("architecture", OTHERS)
def test_other_architectures_take_the_path_that_is_right_for_them(architecture: str, tokenizer: Any) -> None:
    make, path = OTHERS[architecture]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = make().eval()
    backend = backend_of(model, tokenizer)
    assert backend.metadata["attention"] == path
    if path == "repeated":
        assert backend.metadata["attention_reason"]
        with refused(InvalidSetting, varies=r"(?<=support )\(.*\)"):
            backend_of(model, tokenizer, attention="forked")
    network = Network(model, tokenizer, Tagged(), CONTEXT)
    for prompt, result in zip(PROMPTS, backend.run([Continue(prompt, 1, GREEDY) for prompt in PROMPTS]), strict=True):
        assert isinstance(result, Samples)
        ids = torch.tensor([network.prompt_ids(prompt)])
        plain = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=GREEDY.max_tokens, do_sample=False)
        got = [token.id for token in result.generations[0].tokens]
        assert got == plain[0, ids.shape[1] :].tolist()[: len(got)]


def test_a_model_that_forks_still_runs_by_itself(tokenizer: Any) -> None:
    model, plain = build_model("qwen3"), build_model("qwen3")
    backend_of(model, tokenizer)
    ids = torch.arange(5, 25)[None]
    assert torch.allclose(model(ids).logits, plain(ids).logits, atol=1e-6)


def test_pools() -> None:
    widths = [pool_width(length) for length in range(1, 3000)]
    assert all(length <= width for length, width in enumerate(widths, start=1))
    assert all(width <= max(64, 1.51 * length) for length, width in enumerate(widths, start=1))
    assert widths == sorted(widths)
    assert sorted(set(widths))[:6] == [64, 96, 128, 192, 256, 384]


@pytest.mark.parametrize("setting", ["max_rows", "cache_mb", "prefix_cache_mb", "prefill_tokens"])
def test_limits_that_leave_no_room_are_refused(setting: str, llama: Any, tokenizer: Any) -> None:
    settings = ModelSettings(**{setting: -1})  # type: ignore[arg-type]
    with refused(InvalidSetting):
        TransformersBackend(llama, tokenizer, Tagged(), name="tiny", settings=settings)


@pytest.mark.parametrize(
    ("architecture", "attention"),
    [*((name, "forked") for name in ARCHITECTURES), ("llama", "repeated"), ("gemma3", "repeated")],
)
def test_many_prompts_with_one_token_to_score(architecture: str, attention: Attention, tokenizer: Any) -> None:
    """Against one plain pass over each whole text: some begin with the same 90 words, some alike in part, some are short."""
    words = [f"w{(number * 7) % 42}" for number in range(130)]
    shared = tuple(Passage(str(number), " ".join(words[number * 10 : number * 10 + 9])) for number in range(9))
    ends = [Passage("end", " ".join([words[number % 40]] * (1 + number % 5))) for number in range(12)]
    prompts = [Prompt(KNOW, f"who is {end.text} ?", (*shared, end)) for end in ends]
    prompts += [Prompt(KNOW, f"who is {end.text} ?", (*shared[: 6 + number % 3], end)) for number, end in enumerate(ends[:6])]
    prompts += [Prompt(KNOW, f"where is {end.text} ?", (end,)) for end in ends[:6]]
    prompts += prompts[:3]
    model = build_model(architecture)
    backend = backend_of(model, tokenizer, attention=attention)
    asked = [Score(prompt, ("Yes", "No") if number % 3 else ("No", "Yes who")) for number, prompt in enumerate(prompts)]
    # A second time, when beginnings are held.
    for request, *results in zip(asked, backend.run(asked), backend.run(asked), strict=True):
        for number, continuation in enumerate(request.continuations):
            ids = tokenizer(join(Tagged().render(request.prompt), continuation), return_tensors="pt")["input_ids"]
            count = len(continuation.split())
            with torch.inference_mode():
                logits = torch.log_softmax(model(input_ids=ids[:, :-1], use_cache=False).logits[0, -count:].float(), dim=-1)
            expected = logits.gather(1, ids[0, -count:, None])[:, 0].tolist()
            for result in results:
                assert isinstance(result, tuple)
                score = result[number]
                assert isinstance(score, ContinuationScore)
                assert score.logprobs == pytest.approx(expected, abs=1e-4)
    assert (backend.statistics["reused_tokens"] > 12 * 60) is (attention == "forked")
    backend.close()
