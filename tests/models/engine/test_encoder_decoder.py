"""Sequence-to-sequence models: the protocol, and every number against the library's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("torch")

import torch
from transformers import (
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    SwitchTransformersConfig,
    SwitchTransformersForConditionalGeneration,
)

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, ModelUnavailable, PromptTooLong, UsageError
from gnothi.models import ModelSettings, load_model
from gnothi.models.batched import Batched
from gnothi.models.rendering import Plain
from gnothi.models.settings import Attention
from gnothi.models.transformers import TransformersBackend
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, WARM, LanguageModelConformance
from gnothi.types import Capabilities, Decoding, StateSpec
from tests.messages import refused
from tests.models.tiny import build_closing_tokenizer, build_seq2seq


@pytest_asyncio.fixture(params=["t5", "bart"])
async def pair(request: Any) -> AsyncIterator[tuple[Any, LanguageModel]]:
    made = build_seq2seq(request.param)
    model = Batched(TransformersBackend(made, build_closing_tokenizer(), Plain(), name="tiny", settings=ModelSettings()))
    yield made, model
    await model.aclose()


class TestConformance(LanguageModelConformance):
    @pytest_asyncio.fixture
    async def model(self, pair: tuple[Any, LanguageModel]) -> LanguageModel:  # type: ignore[override]
        return pair[1]


def encoded(text: str) -> Any:
    return build_closing_tokenizer()(text, return_tensors="pt")["input_ids"]


async def test_greedy_equals_the_librarys_own(pair: tuple[Any, LanguageModel]) -> None:
    made, model = pair
    generations = await gather(*(model.generate(prompt, GREEDY) for prompt in PROMPTS))
    distinct: set[int | None] = set()
    for prompt, generation in zip(PROMPTS, generations, strict=True):
        ids = encoded(Plain().render(prompt))
        plain = made.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False)[0].tolist()
        begun = 2 if made.generation_config.forced_bos_token_id is not None else 1
        said = [token.id for token in generation.tokens]
        assert plain[begun : begun + len(said)] == said
        distinct |= set(said)
    assert len(distinct) > 3


async def test_a_decoder_that_asks_the_encoder_for_more_than_states() -> None:
    """Experts, that is: which of them each token went to."""
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "num_experts": 2}
    config = SwitchTransformersConfig(vocab_size=64, **sizes, pad_token_id=0, eos_token_id=3, decoder_start_token_id=0)
    made = SwitchTransformersForConditionalGeneration(config).eval()
    model = Batched(TransformersBackend(made, build_closing_tokenizer(), Plain(), name="tiny", settings=ModelSettings()))
    (scored,) = await model.score(PROMPTS[0], ["w1 w2"])
    ids, reply = encoded(Plain().render(PROMPTS[0])), encoded("w1 w2")[0, :-1].tolist()
    with torch.inference_mode():
        read = made(input_ids=ids, decoder_input_ids=torch.tensor([[0, *reply]])).logits[0].log_softmax(dim=-1)
    assert scored.logprobs == pytest.approx([read[at, token].item() for at, token in enumerate(reply)], abs=1e-4)
    await model.aclose()


def test_a_model_whose_steps_say_something_else_than_whole_passes_is_refused() -> None:
    torch.manual_seed(0)
    heads = {f"num_{part}_attention_heads": 2 for part in ("encoder", "decoder")}
    sizes = {"hidden_size": 32, "num_encoder_layers": 2, "num_decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    config = ProphetNetConfig(vocab_size=64, **sizes, **heads, pad_token_id=0, eos_token_id=3, decoder_start_token_id=2)
    made = ProphetNetForConditionalGeneration(config).eval()
    with refused(ModelUnavailable):
        TransformersBackend(made, build_closing_tokenizer(), Plain(), name="tiny", settings=ModelSettings())


async def test_scores_and_logprobs_equal_a_full_pass_in_any_company(pair: tuple[Any, LanguageModel]) -> None:
    made, model = pair
    continuations = ["Yes", "w1 w2 w3 w4 w5", "w6 ."]
    scored = await gather(*(model.score(prompt, continuations) for prompt in PROMPTS))
    sampled = await gather(*(model.sample(prompt, 4, WARM) for prompt in PROMPTS))
    forced = made.generation_config.forced_bos_token_id
    start = [made.config.decoder_start_token_id, *([forced] if forced is not None else [])]

    def expected(text: str, said: list[int]) -> list[float]:
        with torch.no_grad():
            logits = made(input_ids=encoded(text), decoder_input_ids=torch.tensor([[*start, *said]])).logits[0]
        rows = torch.log_softmax(logits.double(), -1)[len(start) - 1 : -1]
        return [float(row[token]) for row, token in zip(rows, said, strict=True)]

    for prompt, scores, samples in zip(PROMPTS, scored, sampled, strict=True):
        text = Plain().render(prompt)
        for score in scores:
            said = build_closing_tokenizer()(score.text, add_special_tokens=False)["input_ids"]
            assert score.logprobs == pytest.approx(expected(text, said), abs=1e-4)
        for generation in samples.generations:
            ids = [token.id or 0 for token in generation.tokens]
            assert [token.logprob for token in generation.tokens] == pytest.approx(expected(text, ids), abs=1e-4)


async def test_no_hidden_states_or_attentions(pair: tuple[Any, LanguageModel]) -> None:
    _, model = pair
    assert model.capabilities == Capabilities(logprobs=True, scoring=True, energy=True)
    with refused(UsageError):
        await model.sample(PROMPTS[0], 2, replace(WARM, seed=1), [StateSpec()])
    with refused(UsageError):
        await model.attend(PROMPTS[0], "w1 is w2 .")


@pytest.mark.parametrize("attention", ["forked", "plain"])
def test_there_is_one_way_of_attention(attention: Attention) -> None:
    with refused(InvalidSetting):
        TransformersBackend(
            build_seq2seq("t5"), build_closing_tokenizer(), Plain(), name="t", settings=ModelSettings(attention=attention)
        )


@pytest.mark.parametrize(
    ("kind", "given", "fits"), [("t5", 0, True), ("t5", 600, False), ("bart", 0, False), ("bart", 9999, False)]
)
async def test_positions_that_end_nowhere_read_long_inputs(kind: str, given: int, fits: bool) -> None:
    """What T5's tokenizer says is how long training texts were; a limit can be given, but none beyond learned positions."""
    tokenizer = build_closing_tokenizer()
    tokenizer.model_max_length = 512
    model = Batched(
        TransformersBackend(build_seq2seq(kind), tokenizer, Plain(), name=kind, settings=ModelSettings(context=given))
    )
    long = replace(PROMPTS[0], question="w1 " * 1000)
    try:
        if fits:
            assert (await model.generate(long, Decoding(max_tokens=4))).prompt_tokens > 1000
            assert all(score.logprob < 0 for score in await model.score(long, ("w1", "w2")))
        else:
            with refused(PromptTooLong):
                await model.generate(long, Decoding(max_tokens=4))
    finally:
        await model.aclose()


async def test_a_folder_is_opened_like_any_other(tmp_path: Path) -> None:
    build_seq2seq("t5").save_pretrained(tmp_path)
    build_closing_tokenizer().save_pretrained(tmp_path)
    model = load_model(str(tmp_path))
    try:
        assert (await model.generate(PROMPTS[0], Decoding(max_tokens=4))).prompt_tokens > 0
        assert model.metadata["attention"] == "encoder-decoder"
    finally:
        await model.aclose()
