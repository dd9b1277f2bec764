"""What transformers passes over in a GGUF file without a word: tensors that it has no name for, and scaled positions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnothi.errors import ModelUnavailable
from gnothi.libraries import listed

_FACTORS = "rope_freqs.weight"
# Llama 3.1 and what followed it: the context before, and between which parts of it frequencies are changed by degrees.
_BEFORE, _LOW, _HIGH = 8192, 1.0, 4.0


def settle(file: Path, model: Any, name: str) -> None:
    """Put into the model's configuration what the file says of its positions.

    Raises ModelUnavailable, by name, for what the model has no place for."""
    from gguf import GGUFReader

    reader: Any = GGUFReader(file)
    tensors = {one.name: one for one in reader.tensors}
    if (scaled := _scaling(reader)) and _rope(model).get("rope_type", "default") == "default":
        raise _refused(name, file, f"scales positions ({scaled})")
    if (factors := tensors.pop(_FACTORS, None)) is not None and not all(one == 1 for one in factors.data.tolist()):
        _rope(model).update(_llama(factors.data.tolist(), model, name, file))
    layers = model.config.get_text_config().num_hidden_layers
    unknown = [
        one for one in tensors if one.startswith("rope_") or ((of := re.match(r"blk\.(\d+)\.", one)) and int(of[1]) >= layers)
    ]
    if not unknown:
        held = sum(int(one.n_elements) for one in tensors.values())
        known = sum({id(one): one.numel() for one in model.state_dict(keep_vars=True).values()}.values())
        unknown = [f"{held - known:,} numbers more than the model has"] if held > known else []
    if unknown:
        raise _refused(name, file, f"holds {listed(sorted(unknown))}")


def _refused(name: str, file: Path, what: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"cannot load model {name!r}: {file.name} {what}, which transformers ignores, so a different model would answer. Use "
        "the model's folder in transformers format, or llama.cpp's server (openai:NAME)."
    )


def _rope(model: Any) -> dict[str, Any]:
    """The configuration's parameters of positions, to be changed in place."""
    parameters: dict[str, Any] = getattr(model.config.get_text_config(), "rope_parameters", None) or {}
    return parameters


def _scaling(reader: Any) -> str:
    """The file's entry for scaled positions; empty where there is none."""
    for key, field in reader.fields.items():
        if key.endswith(".rope.scaling.type") and (kind := field.contents()) != "none":
            return f"{key} = {kind}"
    return ""


def _llama(factors: Sequence[float], model: Any, name: str, file: Path) -> dict[str, Any]:
    """What the frequencies are divided by, as Llama's configurations say it."""
    base, most = _rope(model)["rope_theta"], max(factors)
    expected = []
    for place in range(len(factors)):
        turns = _BEFORE / (2 * math.pi * base ** (place / len(factors)))  # within the context before
        share = min(max((turns - _LOW) / (_HIGH - _LOW), 0), 1)
        expected.append(1 / ((1 - share) / most + share))
    if any(not math.isclose(one, other, rel_tol=1e-3) for one, other in zip(factors, expected, strict=True)):
        raise _refused(name, file, f"divides frequencies by {_FACTORS} in a way of its own")
    return {
        "rope_type": "llama3",
        "factor": most,
        "original_max_position_embeddings": _BEFORE,
        "low_freq_factor": _LOW,
        "high_freq_factor": _HIGH,
    }
