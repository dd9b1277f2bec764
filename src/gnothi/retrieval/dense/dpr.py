"""Checkpoints as DPR's authors published them (Karpukhin et al., 2020), which sentence-transformers pools otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOKENS = 256  # the authors' sequence length
_BATCH = 32


def architecture(name: str) -> str:
    """``DPRContextEncoder`` or ``DPRQuestionEncoder``; empty for a model that is neither, or cannot be read."""
    file: str | Path | None = Path(name) / "config.json"
    with suppress(ImportError, OSError, ValueError, LookupError):
        if not Path(name).is_dir():
            from transformers.utils import hub

            library: Any = hub
            file = library.cached_file(name, "config.json")
        found = str(json.loads(Path(file or "").read_bytes())["architectures"][0])
        return found if found in ("DPRContextEncoder", "DPRQuestionEncoder") else ""
    return ""


class DprModel:
    """The vector is that of the first token. Takes what ``encoders.Model`` takes; vectors are never cut to length 1."""

    def __init__(self, name: str, architecture: str) -> None:
        import torch
        import transformers

        library: Any = transformers
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model: Any = getattr(library, architecture).from_pretrained(name, trust_remote_code=False).eval().to(self._device)
        self._tokenizer: Any = library.AutoTokenizer.from_pretrained(name, trust_remote_code=False)

    def __call__(self, texts: Sequence[Any], role: str, prompt: str | None, unit: bool) -> NDArray[np.float32]:  # noqa: ARG002
        import torch

        pairs = [text if isinstance(text, tuple) else ((prompt or "") + text,) for text in texts]
        # Those of like length together, which wastes little on padding.
        order = sorted(range(len(pairs)), key=lambda place: -sum(map(len, pairs[place])))
        rows: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            columns = (list(column) for column in zip(*(pairs[place] for place in places), strict=True))
            read = self._tokenizer(*columns, padding=True, truncation=True, max_length=TOKENS, return_tensors="pt")
            with torch.inference_mode():
                found = self._model(**read.to(self._device)).pooler_output
            rows |= zip(places, found.float().cpu().numpy(), strict=True)
        return np.stack([rows[place] for place in range(len(pairs))])
