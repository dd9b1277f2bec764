"""Models behind an OpenAI-compatible API."""

from gnothi.models.remote.kind import remote_scheme

SCHEME = remote_scheme(
    "openai",
    {"openai:NAME": "a model behind an OpenAI-compatible API: OpenAI, vLLM, llama.cpp, a gateway (docs/how-to/use-an-api.md)"},
)
