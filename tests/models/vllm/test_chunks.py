"""States of prompts that vLLM reads in chunks, compared with plain passes of the same network. Run with `make test-vllm`."""

from __future__ import annotations

import asyncio
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnothi.concurrency import gather
from gnothi.models import VLLMSettings, load_model
from gnothi.models.rendering import Tagged
from gnothi.models.vllm import loading
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, Network
from gnothi.types import StateSpec
from tests.models.tiny import CONTEXT, build_model

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: run `make test-vllm`", allow_module_level=True)

# Slow, for vLLM has to be started with other options: a minute.
pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

SETTINGS = VLLMSettings(device="cpu", cache_mb=256, max_rows=40)


def test_states_of_prompts_that_are_read_in_chunks(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU. Greedy only: on a CPU, vLLM cannot read the prompt of a seeded sample in chunks."""
    options = loading._options

    def small_chunks(*arguments: Any) -> dict[str, Any]:
        return {**options(*arguments), "enable_chunked_prefill": True, "max_num_batched_tokens": 40}

    monkeypatch.setattr(loading, "_options", small_chunks)
    network = Network(build_model("llama", wide=True), tokenizer, Tagged(), CONTEXT - 1)
    network.model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)

    async def check() -> None:
        model = load_model(f"vllm:{tmp_path}", replace(SETTINGS, renderer="tagged"))
        prompts = [replace(PROMPTS[0], question="w1 w2 w3 w4 w5 ? " * number) for number in range(1, 12)]
        specs = [StateSpec(1), StateSpec(2, "residual")]
        results = await gather(*(model.sample(prompt, 1, GREEDY, [spec]) for prompt in prompts for spec in specs))
        for number, samples in enumerate(results):
            spec = specs[number % 2]
            (generation,) = samples.generations
            ids = network.prompt_ids(prompts[number // 2]) + [token.id for token in generation.tokens if token.id is not None]
            ids += [tokenizer.eos_token_id] * (generation.finish == "eos")
            _, ffn, residual = network.refeed(ids, int(spec.layer or 0))
            expected = (ffn if spec.site == "ffn" else residual)[-1]
            np.testing.assert_allclose(samples.states[0][0], expected, atol=3e-5 * max(1, np.abs(expected).max()))
        await model.aclose()

    asyncio.run(check())
