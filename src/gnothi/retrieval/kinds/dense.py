"""A folder of passages, ranked by the vectors that `gnothi index embed` made."""

from __future__ import annotations

from pathlib import Path

from gnothi.protocols import Retriever
from gnothi.retrieval.folder import read_manifest
from gnothi.schemes import Scheme


def _open(argument: str) -> Retriever:
    from gnothi.retrieval.dense.index import DenseIndex

    return DenseIndex.open(argument)


def fingerprint(argument: str) -> str:
    """Of the passages and of what encodes them."""
    from gnothi.retrieval.dense.store import read_manifest as read_dense

    dense = read_dense(Path(argument))
    return f"{read_manifest(Path(argument)).content}:{dense.digest() if dense else ''}"


SCHEME = Scheme(open=_open, summary="a folder of passages searched by vectors (`gnothi index embed`)", fingerprint=fingerprint)
