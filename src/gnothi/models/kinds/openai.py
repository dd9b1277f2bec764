"""Models behind an OpenAI-compatible API: OpenAI's own, and servers whose address is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gnothi.models.remote.settings import SERVERS, RemoteSettings
from gnothi.models.scheme import ModelScheme
from gnothi.protocols import LanguageModel


class OllamaSettings(RemoteSettings):
    __slots__ = ()
    server = SERVERS["ollama"]


class LMStudioSettings(RemoteSettings):
    __slots__ = ()
    server = SERVERS["lmstudio"]


class AzureSettings(RemoteSettings):
    __slots__ = ()
    server = SERVERS["azure"]


def remote_scheme(name: str, specs: Mapping[str, str], settings: type[RemoteSettings] = RemoteSettings) -> ModelScheme:
    """The scheme of that name, with what users write and the settings that know the server's address."""
    return ModelScheme(open=partial(_open, name), settings=settings, where="behind an API", specs=specs, remote=True)


def _open(name: str, argument: str, _: str, settings: RemoteSettings) -> LanguageModel:
    from gnothi.models.openai import open_remote

    return open_remote(argument, settings, f"{name}:")


SCHEME = remote_scheme(
    "openai",
    {"openai:NAME": "a model behind an OpenAI-compatible API: OpenAI, vLLM, llama.cpp, a gateway"},
)

AZURE = remote_scheme(
    "azure",
    {
        "azure:NAME": "a deployment of Azure OpenAI, at AZURE_OPENAI_ENDPOINT with the key in AZURE_OPENAI_API_KEY; "
        "OPENAI_API_VERSION, where it is set, chooses the older addresses"
    },
    AzureSettings,
)
LMSTUDIO = remote_scheme(
    "lmstudio",
    {"lmstudio:NAME": "a model that LM Studio serves, at 127.0.0.1:1234 unless model.base_url says otherwise"},
    LMStudioSettings,
)
OLLAMA = remote_scheme(
    "ollama",
    {"ollama:NAME": "a model that Ollama serves, at 127.0.0.1:11434 unless model.base_url says otherwise"},
    OllamaSettings,
)
