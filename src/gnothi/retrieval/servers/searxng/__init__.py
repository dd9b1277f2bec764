"""A SearXNG server as an index: what the web says."""
