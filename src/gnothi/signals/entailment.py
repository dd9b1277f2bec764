"""Whether one text entails another: a cross-encoder that was trained for natural language inference (NLI)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from gnothi.errors import MissingDependency, ModelUnavailable

LABEL = "entailment"


@runtime_checkable
class Entailment(Protocol):
    async def entail(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Of each pair, whether the first text entails the second."""
        ...

    async def aclose(self) -> None: ...


class CrossEncoderEntailment:
    """A pair is entailed where that label is the likeliest. ``model`` takes pairs and gives a number for each of its
    ``labels``."""

    def __init__(self, model: Any, labels: Sequence[str], name: str) -> None:
        """Raises ModelUnavailable for a model without the label."""
        places = [place for place, label in enumerate(labels) if label.casefold() == LABEL]
        if not places:
            raise ModelUnavailable(
                f"cannot use {name!r} for entailment: got the labels {', '.join(labels) or 'none'}, expected {LABEL!r} among "
                "them, as of a cross-encoder for NLI (cross-encoder/nli-deberta-v3-base, say)."
            )
        self._model, self._place = model, places[0]

    async def entail(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        scores = await asyncio.to_thread(self._model.predict, [*pairs], show_progress_bar=False)
        return [int(row.argmax()) == self._place for row in scores]

    async def aclose(self) -> None: ...


def open_entailment(spec: str) -> CrossEncoderEntailment:
    """A folder or a hub id. Raises ModelUnavailable, or MissingDependency without sentence-transformers."""
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise MissingDependency("sentence-transformers", "dense", f"the NLI model {spec!r}") from error
    try:
        model = CrossEncoder(spec, trust_remote_code=False)
    except Exception as error:  # the library raises many kinds; to a user they all mean the same
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ModelUnavailable(
            f"cannot load the NLI model {spec!r}: {reason}. Expected a folder or the hub id of a cross-encoder for NLI."
        ) from error
    config: Any = model.config
    labels = dict(getattr(config, "id2label", None) or {})
    return CrossEncoderEntailment(model, [str(labels[key]) for key in sorted(labels)], spec)
