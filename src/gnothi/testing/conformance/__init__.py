"""What every model, retriever, graph, re-ranker, method and signal must do, as test classes to subclass.

They are for pytest with pytest-asyncio (extra testing) in its mode ``auto``; each module says which fixture or attribute its
suite wants.
"""

import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{one}" for one in ("graph", "language_model", "method", "reranker", "retriever", "signal"))
)

from gnothi.testing.conformance.graph import GraphConformance  # noqa: E402 - after assertions are told to explain themselves
from gnothi.testing.conformance.language_model import LanguageModelConformance, NetworkConformance  # noqa: E402
from gnothi.testing.conformance.method import MethodConformance  # noqa: E402
from gnothi.testing.conformance.reranker import RerankerConformance  # noqa: E402
from gnothi.testing.conformance.retriever import RetrieverConformance  # noqa: E402
from gnothi.testing.conformance.signal import SignalConformance  # noqa: E402

__all__ = [
    "GraphConformance",
    "LanguageModelConformance",
    "MethodConformance",
    "NetworkConformance",
    "RerankerConformance",
    "RetrieverConformance",
    "SignalConformance",
]
