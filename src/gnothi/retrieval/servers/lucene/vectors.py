"""Vectors on each engine: the field that holds them, and what a search near one asks.

Both look in a graph of neighbours, so that a near passage may be missed. Scores are the servers' own: they grow with the
similarity that the field was made with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnothi.retrieval.dense.encoders import Vectors
from gnothi.retrieval.filters import Filters
from gnothi.retrieval.servers.lucene.index import Engine, Index, clauses
from gnothi.retrieval.servers.questions import Distance

KINDS: Mapping[Engine, str] = {"elasticsearch": "dense_vector", "opensearch": "knn_vector"}
_SIMILARITIES: Mapping[Distance, str] = {"inner": "max_inner_product", "cosine": "cosine", "euclidean": "l2_norm"}
# The engine is named, for the default changed in 2.18, to one that then did not compare by cosine.
_SPACES: Mapping[Distance, tuple[str, str]] = {
    "inner": ("innerproduct", "faiss"),
    "cosine": ("cosinesimil", "lucene"),
    "euclidean": ("l2", "faiss"),
}
_WIDTH = 256
"""Candidates that are looked at, if no more are wanted: as in our own graph (docs/results/retrieval.md)."""


def field_of(index: Index, engine: Engine, size: int) -> dict[str, Any]:
    """Mapping of a field for vectors of ``size`` numbers, kept in full: by default newer versions compare rounded ones."""
    if engine == "elasticsearch":
        similarity = {"similarity": _SIMILARITIES[index.distance], "index_options": {"type": "hnsw"}}
        return {"type": KINDS[engine], "dims": size, "index": True, **similarity}
    space, by = _SPACES[index.distance]
    return {"type": KINDS[engine], "dimension": size, "method": {"name": "hnsw", "space_type": space, "engine": by}}


def settings_of(engine: Engine) -> dict[str, Any]:
    """Of an index that has such a field."""
    return {"settings": {"index": {"knn": True}}} if engine == "opensearch" else {}


def near(index: Index, engine: Engine, vector: Vectors, k: int, filters: Filters = ()) -> tuple[dict[str, str], dict[str, Any]]:
    """Parameters and body of a search for the ``k`` nearest, in no order where scores are equal."""
    asked, looked_at = numbers(vector), max(k, _WIDTH)
    narrow = {"filter": {"bool": {"filter": clauses(filters)}}} if filters else {}
    if engine == "elasticsearch":  # the type of the search is not ours to choose
        found = {"knn": {"field": index.vectors, "query_vector": asked, "k": k, "num_candidates": looked_at, **narrow}}
    else:
        found = {"query": {"knn": {index.vectors: {"vector": asked, "k": looked_at, **narrow}}}}
    return index.parameters(repr(asked)), {**found, **index.wanted(k)}


def numbers(vector: Vectors) -> list[float]:
    """Nine digits tell every number of 32 bits from its neighbours."""
    return [float(f"{one:.9g}") for one in vector.tolist()]
