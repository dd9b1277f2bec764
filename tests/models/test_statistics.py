from __future__ import annotations

import asyncio
import time
from typing import Any

from gnothi.models.batched import Batched
from gnothi.models.rendering import Tagged
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.types import Decoding, Prompt, Task


async def test_the_decode_loop_is_counted(llama: Any, tokenizer: Any) -> None:
    settings = ModelSettings(max_rows=6)
    model = Batched(TransformersBackend(llama, tokenizer, Tagged(), name="tiny", settings=settings))
    nothing = {
        "steps": 0,
        "fed_rows": 0,
        "samples": 0,
        "slots": 6,
        "read_tokens": 0,
        "reused_tokens": 0,
        "calls": 0,
        "under_way": 256,
    }
    assert model.statistics == nothing
    prompt = Prompt(Task("answer"), "who is w1 ?")
    samples = await model.sample(prompt, 3, Decoding(5, temperature=1.0, seed=1))
    # The prompt gives the first token of each, every other one took a step; samples that say the same share its row.
    lengths = [generation.generated_tokens for generation in samples.generations]
    ids = [tuple(token.id for token in generation.tokens) for generation in samples.generations]
    beginnings = {one[:end] for one in ids for end in range(1, len(one))}
    counted = {"steps": max(lengths) - 1, "samples": sum(lengths) - 3, "fed_rows": len(beginnings)}
    read = {"read_tokens": len(tokenizer(Tagged().render(prompt))["input_ids"]), "calls": 1}
    await asyncio.to_thread(counted_up, model, 1)
    assert model.statistics == nothing | counted | read
    await model.score(prompt, ["Yes", "No"])
    await asyncio.to_thread(counted_up, model, 2)
    assert model.statistics["read_tokens"] == 2 * read["read_tokens"]
    await model.aclose()


def counted_up(model: Batched, calls: int) -> None:
    """They are counted on the worker's thread, a moment after the reply is there."""
    while model.statistics["calls"] < calls:
        time.sleep(0.001)
