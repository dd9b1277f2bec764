"""What a model's ``generation_config`` asks for beyond where a reply ends: named where it is not followed.

A log-probability here is the model's own, at temperature 1 and without cuts. Penalties, bans and searches would make answers
that it does not speak of; how tokens are drawn is for each method to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# What changes a reply, with the value that leaves it as it is where that is neither none, nor 0, nor empty.
_ALTERS: Mapping[str, float | None] = {
    "repetition_penalty": 1,
    "encoder_repetition_penalty": 1,
    "presence_penalty": None,
    "frequency_penalty": None,
    "no_repeat_ngram_size": None,
    "encoder_no_repeat_ngram_size": None,
    "bad_words_ids": None,
    "force_words_ids": None,
    "constraints": None,
    "sequence_bias": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "min_length": None,
    "min_new_tokens": None,
    "exponential_decay_length_penalty": None,
    "stop_strings": None,
    "guidance_scale": 1,
    "watermarking_config": None,
    "num_beams": 1,
    "num_beam_groups": 1,
    "diversity_penalty": None,
    "penalty_alpha": None,
    "dola_layers": None,
    "token_healing": None,
}
_DRAWS: Mapping[str, float | None] = {
    "temperature": 1,
    "top_k": None,
    "top_p": 1,
    "min_p": None,
    "top_h": None,
    "typical_p": 1,
    "epsilon_cutoff": None,
    "eta_cutoff": None,
}
_LONGEST = 60


def alters(config: Any) -> str:
    """What would change replies and is not followed, as ``repetition_penalty=1.1, min_length=56``; empty where there is none.
    ``config``: a GenerationConfig, or None."""
    # A decoder's forced first token is fed (engine.encoder_decoder); one that has none before its reply has no place for it.
    return _changed(config, _ALTERS)


def draws(config: Any) -> str:
    """How tokens would be drawn, which methods say themselves."""
    return _changed(config, _DRAWS)


def not_followed(config: Any) -> dict[str, str]:
    """For a backend's ``metadata``."""
    parts = {"not followed": alters(config), "left to methods": draws(config)}
    text = "; ".join(f"{key}: {value}" for key, value in parts.items() if value)
    return {"generation_config": text} if text else {}


def _changed(config: Any, neutral: Mapping[str, float | None]) -> str:
    values = {key: getattr(config, key, None) for key in neutral}
    return ", ".join(
        f"{key}={_shortened(value)}" for key, value in values.items() if value not in (None, 0, "", [], (), {}, neutral[key])
    )


def _shortened(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
