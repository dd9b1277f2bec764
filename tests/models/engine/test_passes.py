"""Attentions of a tiny model, against what the library gives when asked directly, and without harm to the engine."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

from gnothi.errors import ModelUnavailable, PromptTooLong, UsageError  # noqa: E402
from gnothi.models import transformers  # noqa: E402
from gnothi.models.batched import Attend, Batched, Request, Result, Score  # noqa: E402
from gnothi.models.engine.passes import attend  # noqa: E402
from gnothi.models.engine.text import Detokenizer  # noqa: E402
from gnothi.models.wrappers import Traced  # noqa: E402
from gnothi.types import Attended, ContinuationScore, Decoding, Prompt, Task  # noqa: E402
from tests.messages import refused  # noqa: E402
from tests.models.tiny import ARCHITECTURES, backend_of, build_model, build_tokenizer  # noqa: E402

PROMPT = Prompt(Task("reason"), "where is the w1 of w2 ?")
DRAFT = "the w3 of w4 is w5 ."


@pytest.mark.parametrize("architecture", ARCHITECTURES)
async def test_against_the_library(architecture: str) -> None:
    tokenizer = build_tokenizer()
    backend = backend_of(build_model(architecture), tokenizer)
    model = Traced(Batched(backend))
    try:
        decoding = Decoding(max_tokens=6)
        before = await model.generate(PROMPT, decoding)
        attended = await model.attend(PROMPT, DRAFT)
        after = await model.generate(PROMPT, decoding)
        assert (before.text, len(before.tokens)) == (after.text, len(after.tokens))
        # The second reads less anew, which rounds differently on some processors.
        for one, other in zip(before.tokens, after.tokens, strict=True):
            assert one.logprob == pytest.approx(other.logprob, abs=1e-5)
        scored = (await model.score(PROMPT, [DRAFT]))[0]
    finally:
        await model.aclose()
    text = f"<question> {PROMPT.question} <reason> {DRAFT}"
    ids = tokenizer(text)["input_ids"]
    plain = build_model(architecture)
    plain.set_attn_implementation("eager")
    with torch.no_grad():
        read = plain(input_ids=torch.tensor([ids]), output_attentions=True)
    count = len(DRAFT.split())
    assert len(attended.entropies) == count == len(scored.logprobs)
    assert attended.prompt_tokens == len(ids) - count
    wanted = read.attentions[-1][0].mean(dim=0)[-count:].numpy()
    assert attended.attention == pytest.approx(wanted, abs=1e-5)
    assert attended.attention.sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    chances = torch.distributions.Categorical(logits=read.logits[0, -count - 1 : -1].float())
    assert attended.entropies == pytest.approx(chances.entropy().numpy(), abs=1e-4)
    assert "".join(attended.tokens).split() == [*PROMPT.question.split(), *DRAFT.split()]


async def test_what_is_refused() -> None:
    backend = backend_of(build_model("llama"), build_tokenizer())
    model = Batched(backend)
    with pytest.raises(PromptTooLong):
        await model.attend(PROMPT, "w1 " * 300)
    await model.aclose()


@pytest.mark.parametrize("kind", ["mamba", "rwkv"])
def test_a_model_without_attention(kind: str) -> None:
    """What they return in place of it, nothing or states, is none."""
    sizes = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16}
    config = AutoConfig.for_model(kind, **{key: sizes[key] for key in sizes if kind == "rwkv" or "attention" not in key})
    model = AutoModelForCausalLM.from_config(config).eval()
    with refused(UsageError):
        attend(model, Detokenizer(build_tokenizer()), [2, 20, 21], [22, 23])


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("x"), RuntimeError("can't allocate memory: you tried"), MemoryError()]
)
def test_running_out_of_memory_empties_the_cache_and_tries_again(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what to do where that does not help; requests beside it are answered."""
    backend = backend_of(build_model("llama"), build_tokenizer())
    asked: list[Request] = [Attend(PROMPT, DRAFT), Score(PROMPT, (DRAFT,))]
    (expected, scored) = backend.run(asked)
    assert isinstance(expected, Attended)
    forgotten: list[int] = []
    monkeypatch.setattr(backend._engine.path, "forget", lambda: forgotten.append(1))
    passes = 0

    def attend_if_emptied(*arguments: Any) -> Attended:
        nonlocal passes
        passes += 1
        if len(forgotten) < enough:
            raise error
        return attend(*arguments)

    monkeypatch.setattr(transformers, "attend", attend_if_emptied)
    enough = 1
    (attended, beside) = backend.run(asked)
    assert isinstance(attended, Attended)
    assert (attended.tokens, passes) == (expected.tokens, 2)
    same(beside, scored)
    forgotten.clear()
    enough = 99
    (refused, beside) = backend.run(asked)
    assert isinstance(refused, ModelUnavailable)
    assert "out of memory: the attention of a prompt of" in str(refused)
    assert passes == 4
    same(beside, scored)
    # Any other mistake is passed on as it is.
    error = RuntimeError("size mismatch")
    (refused, beside) = backend.run(asked)
    assert refused is error
    same(beside, scored)


def same(found: Result | Exception, expected: Result | Exception) -> None:
    """But for rounding, which differs with what is read anew."""
    assert isinstance(found, tuple)
    assert isinstance(expected, tuple)
    ((one,), (other,)) = found, expected
    assert isinstance(one, ContinuationScore)
    assert isinstance(other, ContinuationScore)
    assert one.text == other.text
    assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
