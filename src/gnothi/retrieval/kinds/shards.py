"""Folders of passages in one folder, ranked by BM25 as one index."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gnothi.protocols import Retriever
from gnothi.retrieval.folder import read_manifest
from gnothi.schemes import Scheme


def _open(argument: str) -> Retriever:
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.retrieval.shards import shards

    return BM25Index.open(*shards(Path(argument)), name=f"shards:{argument}")


def _fingerprint(argument: str) -> str:
    from gnothi.retrieval.shards import shards

    contents = [read_manifest(folder).content for folder in shards(Path(argument))]
    return hashlib.blake2b(repr(contents).encode(), digest_size=16).hexdigest() if all(contents) else ""


SCHEME = Scheme(
    open=_open,
    summary="a folder of folders made by `gnothi index build`, ranked as one index: shards:FOLDER",
    fingerprint=_fingerprint,
)
