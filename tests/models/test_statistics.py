from __future__ import annotations

from typing import Any

from gnothi.models.batched import Batched
from gnothi.models.rendering import Tagged
from gnothi.models.settings import ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.types import Decoding, Prompt, Task


async def test_the_decode_loop_is_counted(llama: Any, tokenizer: Any) -> None:
    settings = ModelSettings(max_rows=6)
    model = Batched(TransformersBackend(llama, tokenizer, Tagged(), name="tiny", settings=settings))
    assert model.statistics == {"steps": 0, "fed_rows": 0, "slots": 6}
    samples = await model.sample(Prompt(Task("answer"), "who is w1 ?"), 3, Decoding(5, temperature=1.0, seed=1))
    # The prompt gives the first token of each, every other one took a row of a step.
    lengths = [generation.generated_tokens for generation in samples.generations]
    assert model.statistics == {"steps": max(lengths) - 1, "fed_rows": sum(lengths) - 3, "slots": 6}
    await model.aclose()
