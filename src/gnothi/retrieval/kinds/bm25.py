"""A folder of passages, ranked by BM25."""

from __future__ import annotations

from pathlib import Path

from gnothi.protocols import Retriever
from gnothi.retrieval.folder import read_manifest
from gnothi.schemes import Scheme


def _open(argument: str) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index

    return BM25Index.open(argument)


def _fingerprint(argument: str) -> str:
    return read_manifest(Path(argument)).content


SCHEME = Scheme(open=_open, summary="a folder of passages made by `gnothi index build`", fingerprint=_fingerprint)
