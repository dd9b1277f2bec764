"""Frequencies that depend on a text's length: company changes nothing, and a text that outgrows its length is a long one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gnothi.errors import PromptTooLong, UsageError
from gnothi.models.batched import Attend, Continue, Look, Request, Score
from gnothi.models.engine.frequencies import Frequencies
from gnothi.models.rendering import Tagged
from gnothi.models.settings import Attention
from gnothi.types import Attended, ContinuationScore, Decoding, Prompt, PromptStates, Samples, StateSpec, Task
from tests.models.tiny import CONTEXT, VOCABULARY, backend_of, build_model

pytestmark = pytest.mark.usefixtures("one_trial")

LIMIT = 40
SEED = 6  # none of its samples is neither a short text nor a long one
TASK = Task("answer")
SHORT, NEAR, LONG = (
    Prompt(TASK, " ".join(f"w{(7 * place + length) % 42}" for place in range(length))) for length in (4, 30, 90)
)
PATHS: list[Attention] = ["forked", "repeated", "plain"]


def network(kind: str = "longrope", **more: Any) -> Any:
    rope: dict[str, Any] = {"rope_type": kind, "rope_theta": 10_000.0, "factor": 8.0}
    if kind == "longrope":
        rope |= {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "original_max_position_embeddings": LIMIT}
    shape: dict[str, Any] = {"vocab_size": len(VOCABULARY), "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    shape |= {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.4,
        "pad_token_id": 0,
        "eos_token_id": 3,
    }
    with torch.random.fork_rng():
        torch.manual_seed(5)
        config = LlamaConfig(**{**shape, "max_position_embeddings": CONTEXT, "rope_parameters": rope, **more})
        made: Any = LlamaForCausalLM(config)
        return made.eval()


def ids_of(prompt: Prompt, tokenizer: Any) -> list[int]:
    found: list[int] = tokenizer(Tagged().render(prompt))["input_ids"]
    return found


@cache
def untouched() -> Any:
    """Never given to a backend, which would control its frequencies."""
    return network()


def plain(ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = untouched()(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double().log_softmax(-1)
    return found


def check_samples(samples: Any, prompt: Prompt, tokenizer: Any) -> list[int]:
    """Every log-probability is that of one plain pass over the whole text. How long the texts are."""
    assert isinstance(samples, Samples)
    ids, lengths = ids_of(prompt, tokenizer), []
    for one in samples.generations:
        said = [token.id for token in one.tokens if token.id is not None]
        text = [*ids, *said, *([3] if one.finish == "eos" else [])]
        passed = plain(text)[len(ids) - 1 : len(ids) - 1 + len(said)]
        expected = passed.gather(1, torch.tensor(said, dtype=torch.int64)[:, None])[:, 0].tolist()
        assert [token.logprob for token in one.tokens] == pytest.approx(expected, abs=1e-4)
        lengths.append(len(text))
    return lengths


@pytest.mark.parametrize("path", PATHS)
def test_company_changes_nothing(path: Attention, tokenizer: Any) -> None:
    decoding = Decoding(24, temperature=1.0, seed=SEED)
    spec = StateSpec(site="residual", position="fed_eos")
    asked = {prompt: Continue(prompt, 4, decoding, (spec,)) for prompt in (SHORT, NEAR, LONG)}
    alone = {prompt: backend_of(network(), tokenizer, attention=path).run([one])[0] for prompt, one in asked.items()}
    backend = backend_of(network(), tokenizer, attention=path)
    assert backend.metadata["frequencies"] == f"of short texts up to {LIMIT} tokens, of long ones beyond"
    lengths = {}
    for order in ([SHORT, LONG, NEAR], [NEAR, SHORT, LONG]):
        for prompt, samples in zip(order, backend.run([asked[one] for one in order]), strict=True):
            before = alone[prompt]
            assert isinstance(before, Samples)
            assert isinstance(samples, Samples)
            assert [one.text for one in samples.generations] == [one.text for one in before.generations]
            np.testing.assert_allclose(samples.states[0], before.states[0], atol=1e-4)
            lengths[prompt] = check_samples(samples, prompt, tokenizer)
    # Some outgrow the limit, some end before.
    assert max(lengths[NEAR]) > LIMIT > min(lengths[NEAR])


@pytest.mark.parametrize("path", PATHS)
def test_what_is_read_beside_running_texts(path: Attention, tokenizer: Any) -> None:
    backend = backend_of(network(), tokenizer, attention=path)
    spec = StateSpec(site="residual", position="predicting")
    continuations = ("w1", "w2 w3 w4", " ".join(["w5"] * 12))
    running = Continue(NEAR, 3, Decoding(24, temperature=1.0, seed=SEED))
    asked: list[Request] = [
        running,
        *(Score(one, continuations) for one in (SHORT, NEAR, LONG)),
        *(Look(one, (spec,)) for one in (SHORT, LONG)),
    ]
    results = backend.run([*asked, Score(NEAR, ("w1", "w2"))])
    check_samples(results[0], NEAR, tokenizer)
    for prompt, scores in zip((SHORT, NEAR, LONG), results[1:4], strict=True):
        ids = ids_of(prompt, tokenizer)
        assert isinstance(scores, tuple)
        for text, score in zip(continuations, scores, strict=True):
            assert isinstance(score, ContinuationScore)
            said = [VOCABULARY.index(word) for word in text.split()]
            passed = plain([*ids, *said])[len(ids) - 1 : -1]
            assert score.logprobs == pytest.approx(passed.gather(1, torch.tensor(said)[:, None])[:, 0].tolist(), abs=1e-4)
    for prompt, found in zip((SHORT, LONG), results[4:6], strict=True):
        assert isinstance(found, PromptStates)
        with torch.inference_mode():
            read_by_it = torch.tensor([ids_of(prompt, tokenizer)])
            read = untouched()(input_ids=read_by_it, use_cache=False, output_hidden_states=True).hidden_states[1]
        np.testing.assert_allclose(found.states[0], read[0, -1], atol=1e-4)
    attended = backend.run([Attend(LONG, "w1"), Attend(SHORT, "w1")])
    assert all(isinstance(one, Attended) for one in attended)


def test_a_sample_that_is_neither_short_nor_long_is_refused(tokenizer: Any) -> None:
    """Alone: others of its kind, with other seeds, are answered, and every number of theirs is right."""
    backend = backend_of(network(), tokenizer)
    asked = [Continue(NEAR, 1, Decoding(24, temperature=1.0, seed=seed)) for seed in range(40)]
    results = backend.run(asked)
    refused = [one for one in results if isinstance(one, Exception)]
    assert 0 < len(refused) < 20
    assert all(isinstance(one, UsageError) and f"more than {LIMIT} tokens" in str(one) for one in refused)
    for one in results:
        if isinstance(one, Samples):
            check_samples(one, NEAR, tokenizer)


def test_the_same_model_again(tokenizer: Any) -> None:
    """A model that two backends use one after another is under the control of the last one."""
    model = network()
    first, second = Frequencies(model), Frequencies(model)
    assert first.limit == second.limit == LIMIT
    ids = torch.tensor([ids_of(SHORT, tokenizer)])
    with torch.inference_mode():
        short = model(input_ids=ids, use_cache=False).logits
        with first.turned(True):
            assert torch.equal(model(input_ids=ids, use_cache=False).logits, short)
        with second.turned(True):
            assert not torch.allclose(model(input_ids=ids, use_cache=False).logits, short, atol=1e-3)
        assert torch.equal(model(input_ids=ids, use_cache=False).logits, short)


def test_frequencies_that_depend_on_nothing() -> None:
    yarn = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": LIMIT}
    for model in (build_model("llama"), build_model("gpt_neox"), network("yarn", rope_parameters=yarn)):
        frequencies = Frequencies(model)
        assert frequencies.limit is None
        assert not frequencies.is_long(10**6)


def test_dynamic_frequencies_end_where_they_would_change(tokenizer: Any) -> None:
    """Beyond that length each text has its own: it is refused, as for any other model."""
    backend = backend_of(network("dynamic", max_position_embeddings=LIMIT), tokenizer)
    fits, over = backend.run([Continue(SHORT, 1, Decoding(4)), Continue(LONG, 1, Decoding(4))])
    assert isinstance(fits, Samples)
    assert isinstance(over, PromptTooLong)
