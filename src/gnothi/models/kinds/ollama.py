"""Models that Ollama serves on this machine, or elsewhere with ``model.base_url``."""

from gnothi.models.kinds.openai import OllamaSettings, remote_scheme

SCHEME = remote_scheme(
    "ollama",
    {"ollama:NAME": "a model that Ollama serves, at 127.0.0.1:11434 unless model.base_url says otherwise"},
    OllamaSettings,
)
