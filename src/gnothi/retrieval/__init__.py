"""What is out there: retrievers, and the ways to fill them.

Importing this package loads no search engine.
"""

from __future__ import annotations

import os
from pathlib import Path

from gnothi.protocols import Retriever


def open_index(path: str | os.PathLike[str]) -> Retriever:
    """The retriever over the index or graph in folder ``path``. Raises IndexUnavailable when there is none that can be read."""
    from gnothi.retrieval.graph.folder import is_graph, open_folder

    if is_graph(path):
        from gnothi.retrieval.graph.retriever import GraphRetriever

        return GraphRetriever(open_folder(path))
    from gnothi.retrieval.bm25 import BM25Index

    return BM25Index.open(path)


def fingerprint(path: str | os.PathLike[str]) -> str:
    """What changes when the index or graph in folder ``path`` is built anew from other content; empty where it does not say.
    Raises IndexUnavailable when there is none."""
    from gnothi.retrieval.folder import read_manifest
    from gnothi.retrieval.graph import folder as graphs

    folder = Path(path)
    if graphs.is_graph(folder):
        return graphs.fingerprint(folder)
    return read_manifest(folder).content
