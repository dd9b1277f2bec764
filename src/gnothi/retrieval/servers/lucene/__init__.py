"""Passages in indices of Elasticsearch and OpenSearch, which ask and answer alike: both run on Lucene."""
