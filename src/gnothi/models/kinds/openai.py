"""Models behind an OpenAI-compatible API."""

from __future__ import annotations

from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.scheme import ModelScheme
from gnothi.protocols import LanguageModel


def _open(argument: str, _: str, settings: RemoteSettings) -> LanguageModel:
    from gnothi.models.remote.opening import open_remote

    return open_remote(argument, settings)


SCHEME = ModelScheme(
    open=_open,
    settings=RemoteSettings,
    where="behind an API",
    specs={
        "openai:NAME": "a model behind an OpenAI-compatible API: OpenAI, vLLM, llama.cpp, Ollama (docs/how-to/use-an-api.md)",
    },
    remote=True,
)
