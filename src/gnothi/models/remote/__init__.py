"""Parts of the backend for OpenAI-compatible endpoints (``gnothi.models.openai``); none of them loads the client library."""
