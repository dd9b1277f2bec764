from __future__ import annotations

from typing import Any

import pytest
import torch

from gnothi.models.engine.unchanged import TOKENS, Said
from tests.models.tiny import build_model, build_seq2seq


@pytest.mark.parametrize("make", [lambda: build_model("llama"), lambda: build_seq2seq("t5")])
def test_a_change_is_noticed(make: Any) -> None:
    model = make().eval()
    said = Said(model)
    assert said.logits.shape[0] == TOKENS
    assert said.same()
    assert said.same(tokens=2)
    with torch.no_grad():
        model.get_output_embeddings().weight.add_(torch.randn_like(model.get_output_embeddings().weight))
    assert not said.same()
    assert Said(model).same()


def test_half_precision_is_none() -> None:
    model = build_model("llama")
    said = Said(model)
    model.to(torch.bfloat16)
    assert said.same()


def test_tokens_that_the_configuration_names_are_left_alone() -> None:
    model = build_model("llama")
    model.config.image_token_index = 40
    model.config.marks = {"begin": [33, 34], "end": None}
    read: list[int] = []
    model.register_forward_pre_hook(lambda _, __, named: read.extend(named["input_ids"][0].tolist()), with_kwargs=True)
    Said(model)
    assert len(read) == TOKENS
    assert not {0, 2, 3, 33, 34, 40} & set(read)
