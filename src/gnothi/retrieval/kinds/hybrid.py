"""A folder of passages, ranked by words and by vectors at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnothi.protocols import Retriever
from gnothi.retrieval.kinds.dense import fingerprint
from gnothi.schemes import Scheme

if TYPE_CHECKING:
    from gnothi.retrieval.dense.fusion import Fusion


def _open(argument: str, fusion: Fusion | None = None) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.dense import fusion as fusing
    from gnothi.retrieval.dense.index import DenseIndex

    dense, lexical = DenseIndex.open(argument), BM25Index.open(argument)
    return fusing.Hybrid(lexical, dense, fusion or fusing.Fusion(), f"hybrid:{argument}")


SCHEME = Scheme(open=_open, summary="a folder of passages searched by words and by vectors", fingerprint=fingerprint)
