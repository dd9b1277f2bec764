from __future__ import annotations

from typing import Any

import pytest
import transformers

from gnothi.models.habits import alters, draws, told

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
    assert told(None) == told(GenerationConfig()) == {}
    both = GenerationConfig(repetition_penalty=1.05, temperature=0.7)
    assert told(both) == {"generation_config": "not followed: repetition_penalty=1.05; left to methods: temperature=0.7"}
