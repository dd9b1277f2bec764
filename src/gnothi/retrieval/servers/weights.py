"""Whether vectors are there as asked, made by the weights that their encoder has now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.dense.encoders import Encoding


def check_weights(notes: Mapping[str, Any], name: str, encoder: str) -> None:
    """Raises IndexUnavailable where the vectors of the table ``name`` were made by other weights than ``encoder`` has now."""
    made = str(notes.get("encoder", ""))
    now = Encoding(encoder).fingerprint() if made else ""
    if now and made != now:
        raise IndexUnavailable(
            f"the vectors of {name} were made by other weights than {encoder!r} has now (fingerprints {made[:12]} "
            f"and {now[:12]}): they cannot be compared. Put the earlier weights back, or build another table."
        )


def check_vectors(notes: Mapping[str, Any], name: str, encoder: str) -> None:
    """Raises IndexUnavailable where ``name`` was built with vectors and no ``encoder`` is given, or the other way round, or
    where its vectors were made by other weights."""
    if bool(notes.get("encoder_name")) != bool(encoder):
        raise IndexUnavailable(
            f"{name} was built {'with' if notes.get('encoder_name') else 'without'} vectors: got "
            f"{'an' if encoder else 'no'} encoder. Build as before, or into another place."
        )
    if encoder:
        check_weights(notes, name, encoder)
