"""Passages that a search engine keeps: PostgreSQL, LanceDB, Elasticsearch, OpenSearch."""
