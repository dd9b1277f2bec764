"""Indices of OpenSearch, on one server or on several."""

from gnothi.retrieval.servers.lucene.named import scheme

SCHEME = scheme("opensearch")
