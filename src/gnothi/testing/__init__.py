"""For tests of what talks to models, indexes and graphs: scripted ones, which answer at once and always the same.

``gnothi.testing.conformance`` holds what every model, retriever, method and signal must do; it needs pytest (extra testing).
"""

from gnothi.testing.model import EVERYTHING, Reply, Scripted
from gnothi.testing.retriever import FakeReranker, ListedGraph, ScriptedRetriever

__all__ = ["EVERYTHING", "FakeReranker", "ListedGraph", "Reply", "Scripted", "ScriptedRetriever"]
